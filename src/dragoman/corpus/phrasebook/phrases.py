"""Draws noun phrases and places: who and what sentences are about.

In: a random generator and the nouns that make sense. Out: parts of a `Meaning`.
"""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from dragoman.corpus.phrasebook import adverbials as adv
from dragoman.corpus.phrasebook import nouns as n
from dragoman.corpus.phrasebook import verbs as v
from dragoman.corpus.phrasebook.english import person_of
from dragoman.corpus.phrasebook.meaning import (
    Determiner,
    Gap,
    Name,
    Nominal,
    NounPhrase,
    Possessive,
    PrepositionalPhrase,
    Pronoun,
)
from dragoman.corpus.phrasebook.words import Adjective, Gender, Noun

T = TypeVar("T")

_FRIENDS = frozenset(n.FRIENDS)
_KIN = frozenset(n.KIN)
_CUP, _GLASS, _BOTTLE = n.pick("cup, glass, bottle")
_VESSELS: dict[Noun, tuple[Noun, ...]] = {
    drink: (_CUP,) if drink.english in ("coffee", "tea") else (_GLASS, _BOTTLE)
    for drink in n.DRINKS
}
_OWNERS = n.CHILDREN + n.pick("teacher, doctor, pilot, baker, student, painter, man, woman")
_POSSESSIVE_BY_GENDER: dict[Gender, Possessive] = {"m": "his", "f": "her"}
POSSESSIVES: tuple[Possessive, ...] = ("my", "your", "his", "her", "our", "their")


def choose(rng: Random, options: Sequence[T]) -> T:
    """`rng.choice` at half its cost, which counts here."""
    return options[int(rng.random() * len(options))]


def possessive_of(owner: Nominal) -> Possessive | None:
    """The possessive that points back to a subject; none for a child, whose sex is open."""
    match owner:
        case Pronoun():
            return owner.possessive
        case Name():
            return "his" if owner.gender == "m" else "her"
        case NounPhrase():
            if owner.plural:
                return "their"
            return _POSSESSIVE_BY_GENDER.get(owner.noun.gender)
        case Gap():
            return None


def person(rng: Random, nouns: Sequence[Noun] = n.PERSONS) -> Nominal:
    """A subject: a pronoun or a name where any person will do, else a noun of the group."""
    draw = rng.random()
    is_human = nouns[0].is_person
    if is_human and draw < 0.34:
        return choose(rng, n.PRONOUNS)
    if is_human and draw < 0.45:
        return choose(rng, n.NAMES)
    noun = choose(rng, nouns)
    return person_phrase(rng, noun) if noun.is_person else thing_phrase(rng, noun, style="known")


def known_person(rng: Random, nouns: Sequence[Noun] = n.PERSONS) -> Nominal:
    """A subject of which something is said or asked: not just any."""
    subject = person(rng, nouns)
    while isinstance(subject, NounPhrase) and subject.determiner == "a":
        subject = person(rng, nouns)
    return subject


def person_phrase(rng: Random, noun: Noun, possessor: Nominal | None = None) -> NounPhrase:
    """Kin and friends belong to someone, others are introduced by an article."""
    plural = noun.german_plural != "" and rng.random() < 0.22
    if noun in _KIN or noun in _FRIENDS:
        own = possessive_of(possessor) if possessor is not None else None
        possessive = choose(rng, POSSESSIVES) if own is None or rng.random() < 0.25 else own
        return NounPhrase(noun, plural, possessive, maybe_adjective(rng, noun, 0.15))
    determiner: Determiner = "the"
    draw = rng.random()
    if draw < 0.14 and not plural:
        determiner = "a"
    elif draw < 0.2:
        determiner = "this"
    return NounPhrase(noun, plural, determiner, maybe_adjective(rng, noun, 0.25))


def thing_phrase(
    rng: Random, noun: Noun, possessor: Nominal | None = None, style: v.Style = "any"
) -> NounPhrase:
    """An object, introduced in the style of its frame."""
    if noun.is_person:
        return person_phrase(rng, noun, possessor)
    adjective = maybe_adjective(rng, noun, 0.42)
    draw = rng.random()
    if style == "new" or (style == "any" and draw < 0.5):
        if noun.german_plural:
            return _new_thing(rng, noun, adjective)
        return _new_stuff(rng, noun, adjective)
    plural = noun.german_plural != "" and rng.random() < 0.2
    if draw > 0.88 and noun.german_plural:
        return NounPhrase(noun, plural, owner=owner(rng), adjective=adjective)
    if draw > 0.72 and possessor is not None:
        possessive = possessive_of(possessor)
        if possessive is not None:
            # Several people have several things: "they are looking for their keys".
            is_shared = noun.german_plural != "" and person_of(possessor) >= 3
            return NounPhrase(noun, plural or is_shared, possessive, adjective)
    return NounPhrase(noun, plural, "this" if draw > 0.65 else "the", adjective)


def _new_thing(rng: Random, noun: Noun, adjective: Adjective | None) -> NounPhrase:
    draw = rng.random()
    if draw < 0.5:
        return NounPhrase(noun, False, "a", adjective)
    if draw < 0.68:
        return NounPhrase(noun, True, "bare", adjective)
    if draw < 0.82:
        return NounPhrase(noun, True, "bare", adjective, choose(rng, adv.SMALL_NUMBERS))
    return NounPhrase(noun, False, "the", adjective)


def _new_stuff(rng: Random, noun: Noun, adjective: Adjective | None) -> NounPhrase:
    """Food and drink, which needs no article, or a vessel of it."""
    draw = rng.random()
    if noun in _VESSELS and draw < 0.4:
        vessel = choose(rng, _VESSELS[noun])
        if draw < 0.15:
            number = choose(rng, adv.SMALL_NUMBERS)
            return NounPhrase(vessel, True, "bare", number=number, content=noun)
        return NounPhrase(vessel, False, "a", content=noun)
    return NounPhrase(noun, False, "bare" if draw < 0.85 else "the", adjective)


def owner(rng: Random) -> NounPhrase | Name:
    """Who stands in the genitive: "Anna's", "my father's", "the teacher's"."""
    draw = rng.random()
    if draw < 0.4:
        return choose(rng, n.NAMES)
    if draw < 0.75:
        return NounPhrase(choose(rng, n.KIN), determiner=choose(rng, POSSESSIVES))
    return NounPhrase(choose(rng, _OWNERS))


def maybe_adjective(rng: Random, noun: Noun, probability: float) -> Adjective | None:
    if noun.adjectives and rng.random() < probability:
        return choose(rng, noun.adjectives)
    return None


def other_person(
    rng: Random, nouns: Sequence[Noun], subject: Nominal, style: v.Style = "known"
) -> Nominal:
    """An object that is not the subject over again, which would have to be reflexive."""
    if rng.random() < 0.25:
        pronoun = choose(rng, n.PRONOUNS)
        is_clear = not isinstance(subject, Pronoun) or (
            pronoun is not subject and {pronoun, subject} != {n.SPEAKER, n.WE}
        )
        if is_clear:
            return pronoun
    noun = choose(rng, nouns)
    while isinstance(subject, NounPhrase) and subject.noun is noun:
        noun = choose(rng, nouns)
    return thing_phrase(rng, noun, subject, style)


def pronoun_for(subject: Nominal) -> Pronoun:
    """The pronoun that takes a subject up again."""
    match subject:
        case Pronoun():
            return subject
        case Name():
            return n.HE if subject.gender == "m" else n.SHE
        case NounPhrase():
            if subject.plural:
                return n.THEY
            return n.HE if subject.noun.gender == "m" else n.SHE
        case Gap():
            return n.THEY if subject.plural else n.HE


def protagonist(rng: Random) -> Nominal:
    """A subject that a pronoun can take up, so no "child", which is neither he nor she."""
    subject = known_person(rng)
    while isinstance(subject, NounPhrase) and subject.noun.gender == "n" and not subject.plural:
        subject = known_person(rng)
    return subject


def asked_about(rng: Random, nouns: Sequence[Noun] = n.PERSONS) -> Nominal:
    """A subject one asks about: not oneself, and nobody unknown."""
    subject = n.YOU if rng.random() < 0.2 else known_person(rng, nouns)
    while subject in (n.SPEAKER, n.WE):
        subject = known_person(rng, nouns)
    return subject


def location(spot: v.Spot) -> PrepositionalPhrase:
    """Where something happens: the dative."""
    if isinstance(spot, Name):
        return PrepositionalPhrase("in", "in", "dative", spot)
    return PrepositionalPhrase(spot.english_at, spot.german_at, "dative", NounPhrase(spot.noun))


def destination(spot: v.Spot) -> PrepositionalPhrase:
    """Where someone goes: "nach" for towns and countries, else what the place asks for."""
    if isinstance(spot, Name):
        return PrepositionalPhrase("to", "nach", "dative", spot)
    return PrepositionalPhrase("to", spot.german_to, spot.to_case, NounPhrase(spot.noun))
