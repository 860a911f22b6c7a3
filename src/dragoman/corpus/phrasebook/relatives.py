"""Constructions with a relative clause."""

from random import Random

from dragoman.corpus.phrasebook import nouns as n
from dragoman.corpus.phrasebook import verbs as v
from dragoman.corpus.phrasebook.clauses import activity, timed, unhurried
from dragoman.corpus.phrasebook.meaning import (
    Clause,
    Gap,
    Meaning,
    Nominal,
    NounPhrase,
    Question,
    RelativeClause,
    Tense,
)
from dragoman.corpus.phrasebook.phrases import POSSESSIVES, asked_about, choose, person
from dragoman.corpus.phrasebook.statements import MOODS, TRAITS


def person_with_relative(rng: Random, speaker: Nominal | None = None) -> NounPhrase:
    """ "the woman who is reading a book"; the speaker tells of what others do."""
    noun = choose(rng, n.ADULTS + n.CHILDREN + n.PROFESSIONS)
    plural = rng.random() < 0.2
    draw = rng.random()
    if draw < 0.65:
        clause = unhurried(activity(rng, NounPhrase(noun, plural)))
        if clause.tense == "future":
            clause = clause._replace(tense="past")
        clause = clause._replace(subject=Gap(plural))
        return NounPhrase(noun, plural, relative=RelativeClause("subject", clause))
    subject = asked_about(rng)
    while subject == speaker:
        subject = asked_about(rng)
    if draw < 0.82:
        frame = choose(rng, v.DATIVE[:4])
        clause = Clause(subject, frame.verb, "past")
        return NounPhrase(noun, plural, relative=RelativeClause("dative", clause))
    frame = choose(rng, v.PERSON_FRAMES)
    clause = Clause(subject, frame.verb, "past")
    return NounPhrase(noun, plural, relative=RelativeClause("accusative", clause))


def relative_subject(rng: Random) -> Meaning:
    """Somebody of whom a relative clause tells is such and such."""
    subject = person_with_relative(rng)
    draw = rng.random()
    if draw < 0.4 and not subject.plural and subject.noun.gender != "n":
        noun = choose(rng, n.KIN + n.FRIENDS)
        while noun.gender != subject.noun.gender:
            noun = choose(rng, n.KIN + n.FRIENDS)
        identity = NounPhrase(noun, determiner=choose(rng, POSSESSIVES))
        return Clause(subject, v.BE, complement=identity)
    return Clause(subject, v.BE, complement=choose(rng, MOODS + TRAITS))


def relative_object(rng: Random) -> Meaning:
    """Somebody knows a person of whom a relative clause tells."""
    knower = person(rng)
    if rng.random() < 0.3:
        return Question(Clause(n.YOU, v.KNOW, accusative=person_with_relative(rng, n.YOU)))
    return Clause(knower, v.KNOW, accusative=person_with_relative(rng, knower))


def relative_thing(rng: Random) -> Meaning:
    """ "The book that Anna bought is expensive"."""
    frame = choose(rng, v.THING_FRAMES)
    subject = asked_about(rng, frame.subjects) if rng.random() < 0.8 else n.SPEAKER
    noun = choose(rng, frame.objects)
    while not noun.adjectives:
        frame = choose(rng, v.THING_FRAMES)
        noun = choose(rng, frame.objects)
    clause = Clause(subject, frame.verb, "past")
    if rng.random() < 0.35:
        clause = timed(rng, clause, 1.0)._replace(front="")
    plural = bool(noun.german_plural) and rng.random() < 0.2
    thing = NounPhrase(noun, plural, relative=RelativeClause("accusative", clause))
    is_gone = frame.verb in (v.EAT, v.DRINK, v.SELL, v.LOSE) or rng.random() < 0.3
    tense: Tense = "past" if is_gone else "present"
    return Clause(thing, v.BE, tense, complement=choose(rng, noun.adjectives))
