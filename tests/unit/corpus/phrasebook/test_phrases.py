from random import Random

import pytest

from dragoman.corpus.phrasebook import nouns as n
from dragoman.corpus.phrasebook import phrases
from dragoman.corpus.phrasebook.meaning import Name, NounPhrase, Pronoun

MAN, WOMAN, CHILD = n.pick("man, woman, child")
ANNA, PAUL = n.NAMES[0], n.NAMES[5]


@pytest.mark.parametrize(
    ("subject", "pronoun", "possessive"),
    [
        (NounPhrase(MAN), n.HE, "his"),
        (NounPhrase(WOMAN), n.SHE, "her"),
        (NounPhrase(MAN, True), n.THEY, "their"),
        (ANNA, n.SHE, "her"),
        (PAUL, n.HE, "his"),
        (n.WE, n.WE, "our"),
    ],
)
def test_a_subject_is_taken_up_by_its_pronoun_and_possessive(subject, pronoun, possessive) -> None:
    assert phrases.pronoun_for(subject) is pronoun
    assert phrases.possessive_of(subject) == possessive


def test_a_child_is_neither_he_nor_she() -> None:
    assert phrases.possessive_of(NounPhrase(CHILD)) is None
    rng = Random(3)
    for _ in range(500):
        subject = phrases.protagonist(rng)
        open_sex = isinstance(subject, NounPhrase) and subject.noun.gender == "n"
        assert not open_sex or subject.plural


def test_nobody_asks_about_himself_or_about_just_anybody() -> None:
    rng = Random(3)
    for _ in range(500):
        subject = phrases.asked_about(rng)
        assert subject not in (n.SPEAKER, n.WE)
        assert not isinstance(subject, NounPhrase) or subject.determiner != "a"


@pytest.mark.parametrize("subject", [n.SPEAKER, n.WE, n.SHE, NounPhrase(MAN)])
def test_an_object_is_not_the_subject_over_again(subject) -> None:
    rng = Random(3)
    for _ in range(300):
        other = phrases.other_person(rng, n.ADULTS, subject)
        if isinstance(other, Pronoun) and isinstance(subject, Pronoun):
            assert other is not subject
            assert {other, subject} != {n.SPEAKER, n.WE}
        if isinstance(other, NounPhrase) and isinstance(subject, NounPhrase):
            assert other.noun is not subject.noun


def test_kin_belong_to_someone() -> None:
    rng = Random(3)
    drawn = [phrases.person_phrase(rng, noun) for noun in n.KIN for _ in range(20)]
    assert {phrase.determiner for phrase in drawn} <= set(phrases.POSSESSIVES)


@pytest.mark.parametrize(("drink", "vessels"), [("coffee", {"cup"}), ("milk", {"glass", "bottle"})])
def test_drinks_come_in_their_vessels(drink: str, vessels: set[str]) -> None:
    rng, (noun,) = Random(3), n.pick(drink)
    drawn = [phrases.thing_phrase(rng, noun, style="new") for _ in range(100)]
    assert {phrase.noun.english for phrase in drawn if phrase.content} == vessels


def test_one_is_in_a_town_and_goes_to_it() -> None:
    berlin, (station,) = n.CITIES[0], n.pick_sites("station")
    assert isinstance(berlin, Name)
    assert phrases.location(berlin)[:3] == ("in", "in", "dative")
    assert phrases.destination(berlin)[:3] == ("to", "nach", "dative")
    assert phrases.destination(station)[:3] == ("to", "zu", "dative")
