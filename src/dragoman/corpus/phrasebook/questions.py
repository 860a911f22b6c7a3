"""Constructions that ask: whether, who, what, where, when, why, how many."""

from random import Random

from dragoman.corpus.phrasebook import adverbials as adv
from dragoman.corpus.phrasebook import nouns as n
from dragoman.corpus.phrasebook import verbs as v
from dragoman.corpus.phrasebook.clauses import (
    PRESENT_TENSES,
    activity,
    circumstances,
    tense_for,
    timed,
    unhurried,
    with_modal,
    with_object,
)
from dragoman.corpus.phrasebook.meaning import (
    Clause,
    Meaning,
    Question,
)
from dragoman.corpus.phrasebook.phrases import asked_about, choose, known_person, thing_phrase
from dragoman.corpus.phrasebook.statements import GOODS, MOODS, TRAITS
from dragoman.corpus.phrasebook.words import Phrase

_LOCATED_FRAMES = tuple(frame for frame in (*v.TRANSITIVE, *v.INTRANSITIVE) if frame.places)


def yes_no_question(rng: Random) -> Meaning:
    draw = rng.random()
    if draw < 0.2:
        return Question(Clause(asked_about(rng), v.BE, complement=choose(rng, MOODS + TRAITS[:5])))
    if draw < 0.4:
        clause = with_modal(rng, known_person(rng))
        return Question(clause._replace(negated=False, front=""))
    clause = activity(rng, asked_about(rng))
    if clause.tense in PRESENT_TENSES and clause.verb not in _OPENING_VERBS:
        clause = clause._replace(tense="past" if draw < 0.8 else "future")
    return Question(timed(rng, clause)._replace(front=""))


# Only these begin a German question, so that a model sees each often enough in that place.
_OPENING_VERBS = frozenset(
    {v.EAT, v.DRINK, v.BUY, v.READ, v.WRITE, v.VISIT, v.KNOW, v.NEED, v.WORK, v.SLEEP, v.PLAY}
    | {v.GO, v.DRIVE, v.HELP, v.LIVE, v.WAIT, v.COOK, v.LEARN, v.SEE, v.HAVE}
)


def question_for_subject(rng: Random) -> Meaning:
    return Question(timed(rng, activity(rng, n.WHO), 0.3)._replace(front=""))


def question_for_object(rng: Random) -> Meaning:
    """ "What", "who" in both object cases, "how many": the clause lacks what is asked for."""
    draw = rng.random()
    if draw < 0.5:
        frame, asked = choose(rng, v.THING_FRAMES), adv.WHAT
        if draw < 0.2:
            noun = choose(rng, frame.objects)
            if noun.german_plural:
                asked = Phrase(f"how many {noun.english_plural}", f"wie viele {noun.german_plural}")
    elif draw < 0.75:
        frame, asked = choose(rng, v.PERSON_FRAMES), adv.WHOM
    else:
        frame, asked = choose(rng, v.DATIVE), adv.TO_WHOM
    subject = asked_about(rng, frame.subjects)
    clause = Clause(subject, frame.verb, tense_for(rng, frame.verb, subject, False))
    clause = timed(rng, circumstances(rng, clause, frame), 0.3)
    return Question(clause._replace(front="", manner=None), asked)


def question_for_circumstance(rng: Random) -> Meaning:
    """ "When", "why", "where" and "where to"."""
    draw = rng.random()
    if draw < 0.3:
        frame = choose(rng, _LOCATED_FRAMES)
        subject = asked_about(rng, frame.subjects)
        if frame.objects:
            clause = with_object(rng, frame, subject)
        else:
            clause = Clause(subject, frame.verb, tense_for(rng, frame.verb, subject, False))
        return Question(unhurried(clause)._replace(place=None), adv.WHERE)
    if draw < 0.5:
        frame = choose(rng, v.MOTION[:-1])
        subject = asked_about(rng, frame.subjects)
        tense = tense_for(rng, frame.verb, subject, False)
        clause = Clause(subject, frame.verb, tense)
        return Question(timed(rng, unhurried(clause), 0.4)._replace(front=""), adv.WHERE_TO)
    clause = unhurried(activity(rng, asked_about(rng)))
    if draw < 0.75:
        tense = "past" if rng.random() < 0.6 else "future"
        return Question(clause._replace(tense=tense), adv.WHEN)
    return Question(clause, adv.WHY)


def question_for_measure(rng: Random) -> Meaning:
    if rng.random() < 0.5:
        return Question(Clause(asked_about(rng), v.BE), Phrase("how old", "wie alt"))
    thing = thing_phrase(rng, choose(rng, GOODS), style="known")
    return Question(Clause(thing, v.COST), Phrase("how much", "wie viel"))
