"""Draws clauses: somebody does something, in a tense that the English words show.

In: a random generator, and the subject if it is settled. Out: a `Clause`.
"""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from dragoman.corpus.phrasebook import adverbials as adv
from dragoman.corpus.phrasebook import nouns as n
from dragoman.corpus.phrasebook import verbs as v
from dragoman.corpus.phrasebook.english import person_of
from dragoman.corpus.phrasebook.meaning import (
    Clause,
    Modal,
    Name,
    Nominal,
    NounPhrase,
    PrepositionalPhrase,
    Pronoun,
    Tense,
)
from dragoman.corpus.phrasebook.phrases import (
    choose,
    destination,
    location,
    other_person,
    person,
    thing_phrase,
)
from dragoman.corpus.phrasebook.words import Adjective, Phrase, Verb

PRESENT_TENSES: frozenset[Tense] = frozenset({"present", "progressive", "liking"})
_TIMES: dict[Tense, tuple[tuple[Phrase, ...], ...]] = {
    "past": adv.PAST_TIMES,
    "future": adv.FUTURE_TIMES,
    "progressive": adv.PRESENT_TIMES,
}


def timed(rng: Random, clause: Clause, probability: float = 0.6) -> Clause:
    """The clause with a time that suits its tense, in front or behind; some with a habit."""
    if clause.tense == "present" and not clause.verb.stative and clause.modal is None:
        if rng.random() < 0.5:
            return clause._replace(frequency=choose(rng, adv.FREQUENCIES))
        time = choose(rng, choose(rng, adv.HABITUAL_TIMES))
        return clause._replace(time=time, front="time" if rng.random() < 0.35 else "")
    if clause.tense == "perfect":
        return clause._replace(frequency=adv.ALREADY)
    if clause.tense == "liking":  # One likes to sing, not to sing well.
        return clause._replace(manner=None)
    if clause.tense not in _TIMES or rng.random() > probability:
        return clause
    groups = _TIMES[clause.tense]
    if clause.negated or clause.verb.stative:
        groups = groups[:3]  # States and what did not happen last for days, not for minutes.
    time = choose(rng, choose(rng, groups))
    return clause._replace(time=time, front="time" if rng.random() < 0.45 else "")


def tense_for(rng: Random, verb: Verb, subject: Nominal, habitual: bool) -> Tense:
    """A tense that suits the verb and that its English form shows."""
    draw = rng.random()
    if subject in (n.SPEAKER, n.YOU):  # More of the present, whose forms no other subject has.
        draw = max(draw, rng.random())
    if draw < 0.31:
        return "past"
    if verb.stative and verb not in v.MOMENTARY:
        return "present"
    if draw < 0.42:
        return "future"
    if verb in v.MOMENTARY:
        return "past"
    if draw < 0.51:
        return "perfect"
    shows_present = person_of(subject) == 2 or not verb.past_looks_present
    if habitual and draw < 0.7 and shows_present:
        return "present"
    if habitual and draw < 0.76 and shows_present:
        return "liking"
    return "progressive"


AnyFrame = TypeVar("AnyFrame", v.Frame, v.PrepositionalFrame)


def frame_for(rng: Random, frames: Sequence[AnyFrame], subject: Nominal | None) -> AnyFrame:
    """A frame that suits the subject, if that is settled: farmers do not cry, children do."""
    frame = choose(rng, frames)
    if isinstance(subject, NounPhrase):
        while subject.noun not in frame.subjects:
            frame = choose(rng, frames)
    return frame


def transitive(rng: Random, subject: Nominal | None = None) -> Clause:
    frame = frame_for(rng, v.TRANSITIVE, subject)
    return with_object(rng, frame, subject or person(rng, frame.subjects))


def with_object(rng: Random, frame: v.Frame, subject: Nominal) -> Clause:
    accusative: Nominal
    if frame.objects[-1].is_person:
        accusative = other_person(rng, frame.objects, subject, frame.style)
    else:
        accusative = thing_phrase(rng, choose(rng, frame.objects), subject, frame.style)
    if isinstance(accusative, Pronoun) and frame.verb.particle:
        accusative = choose(rng, n.NAMES)
    clause = Clause(
        subject,
        frame.verb,
        tense_for(rng, frame.verb, subject, frame.habitual),
        accusative=accusative,
    )
    return circumstances(rng, clause, frame)


def circumstances(rng: Random, clause: Clause, frame: v.Frame) -> Clause:
    draw = rng.random()
    if frame.manners and draw < 0.18:
        return clause._replace(manner=choose(rng, frame.manners))
    if frame.places and draw > 0.6:
        place = location(choose(rng, frame.places))
        return clause._replace(place=place, front="place" if draw > 0.96 else "")
    return clause


def intransitive(rng: Random, subject: Nominal | None = None) -> Clause:
    if rng.random() < 0.22:
        return idiomatic(rng, subject)
    frame = frame_for(rng, v.INTRANSITIVE, subject)
    subject = subject or person(rng, frame.subjects)
    clause = Clause(subject, frame.verb, tense_for(rng, frame.verb, subject, frame.habitual))
    if frame.places and (not frame.manners or rng.random() < 0.7):
        return clause._replace(place=location(choose(rng, frame.places)))
    return clause._replace(manner=choose(rng, frame.manners) if frame.manners else None)


def idiomatic(rng: Random, subject: Nominal | None = None) -> Clause:
    """Verbs with a fixed companion: "plays the piano", "spielt Klavier"."""
    verb, companion, places = choose(rng, v.IDIOMS)
    subject = subject or person(rng)
    place = location(choose(rng, places)) if rng.random() < 0.3 else None
    tense = tense_for(rng, verb, subject, True)
    return Clause(subject, verb, tense, complement=companion, place=place)


def motion(rng: Random, subject: Nominal | None = None) -> Clause:
    frame = frame_for(rng, v.MOTION, subject)
    subject = subject or person(rng, frame.subjects)
    return Clause(
        subject,
        frame.verb,
        tense_for(rng, frame.verb, subject, frame.habitual),
        complement=destination(choose(rng, frame.places)),
        manner=choose(rng, frame.manners) if frame.manners and rng.random() < 0.15 else None,
    )


def ditransitive(rng: Random, subject: Nominal | None = None) -> Clause:
    frame = frame_for(rng, v.DITRANSITIVE, subject)
    subject = subject or person(rng, frame.subjects)
    return Clause(
        subject,
        frame.verb,
        tense_for(rng, frame.verb, subject, False),
        dative=other_person(rng, n.PERSONS, subject),
        accusative=thing_phrase(rng, choose(rng, frame.objects), subject, frame.style),
    )


def with_dative(rng: Random, subject: Nominal | None = None) -> Clause:
    frame = frame_for(rng, v.DATIVE, subject)
    subject = subject or person(rng, frame.subjects)
    return Clause(
        subject,
        frame.verb,
        tense_for(rng, frame.verb, subject, frame.habitual),
        dative=other_person(rng, frame.objects, subject),
    )


def prepositional(rng: Random, subject: Nominal | None = None) -> Clause:
    frame = frame_for(rng, v.PREPOSITIONAL, subject)
    subject = subject or person(rng, frame.subjects)
    target: Nominal
    if frame.objects[0].is_person:
        target = other_person(rng, frame.objects, subject)
    else:
        target = thing_phrase(rng, choose(rng, frame.objects), subject, "known")
        if frame.case == "dative":  # Forms like "Häusern" and "großem" would be too rare to learn.
            has_strong_ending = isinstance(target.owner, Name)
            adjective = None if has_strong_ending else target.adjective
            target = target._replace(plural=False, adjective=adjective)
    return Clause(
        subject,
        frame.verb,
        tense_for(rng, frame.verb, subject, False),
        complement=PrepositionalPhrase(frame.english, frame.german, frame.case, target),
    )


_ACTIVITIES = (
    *(transitive,) * 9,
    *(intransitive,) * 4,
    *(motion,) * 3,
    *(ditransitive,) * 3,
    *(with_dative,) * 2,
    *(prepositional,) * 3,
)


def activity(rng: Random, subject: Nominal | None = None) -> Clause:
    """What somebody does, with objects and place, without time."""
    return choose(rng, _ACTIVITIES)(rng, subject)


def deny(clause: Clause) -> Clause:
    """The clause negated, without the parts that only a contrast would negate."""
    if isinstance(clause.complement, Phrase):
        return clause
    accusative = clause.accusative
    is_kept = isinstance(accusative, NounPhrase) and accusative.determiner == "bare"
    if isinstance(accusative, NounPhrase):
        if accusative.content is not None:
            accusative = NounPhrase(accusative.content, determiner="bare")
        accusative = accusative._replace(number=None)
    tense: Tense = clause.tense
    if tense in ("perfect", "liking"):
        tense = "past"
    elif tense == "present" and not clause.verb.stative:
        tense = "progressive"
    return clause._replace(
        tense=tense,
        negated=True,
        accusative=accusative,
        manner=None,
        place=clause.place if is_kept or accusative is None else None,
        front="",
    )


def with_modal(rng: Random, subject: Nominal | None = None) -> Clause:
    """An activity that somebody can, must, wants to or may do, or not."""
    clause = activity(rng, subject)
    while clause.verb.stative or clause.verb in v.INVOLUNTARY:
        clause = activity(rng, subject)
    is_past = rng.random() < 0.25
    modal: Modal = choose(rng, v.PAST_MODALS if is_past else v.PRESENT_MODALS)
    clause = clause._replace(tense="past" if is_past else "future", front="")
    if rng.random() < 0.25 and modal is not v.WOULD_LIKE_TO:
        clause = deny(clause)
    return timed(rng, clause, 0.3)._replace(modal=modal)


def unhurried(clause: Clause) -> Clause:
    """In a tense that asks for no adverb, and without manner."""
    tense: Tense = clause.tense
    if tense in ("perfect", "liking"):
        tense = "past"
    elif tense == "present" and not clause.verb.stative:
        tense = "progressive"
    return clause._replace(tense=tense, manner=None, front="")


def be(subject: Nominal, quality: Adjective) -> Clause:
    return Clause(subject, v.BE, complement=quality)
