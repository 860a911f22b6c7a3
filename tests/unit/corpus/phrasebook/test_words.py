import pytest

from dragoman.corpus.phrasebook.words import (
    adjective,
    german_stem,
    noun,
    regular_participle,
    regular_past,
    regular_plural,
    regular_third_person,
    verb,
)


def test_a_noun_is_read_from_its_dictionary_entry() -> None:
    child = noun("child, children", "das Kind, Kinder")
    milk = noun("milk", "die Milch")
    assert (child.english_plural, child.german, child.german_plural) == (
        "children",
        "Kind",
        "Kinder",
    )
    assert (child.gender, milk.gender) == ("n", "f")
    assert milk.german_plural == "", "it is used in the singular only"


@pytest.mark.parametrize(
    ("singular", "plural"),
    [("apple", "apples"), ("bus", "buses"), ("dish", "dishes"), ("city", "cities")],
)
def test_english_plurals_follow_the_spelling(singular: str, plural: str) -> None:
    assert regular_plural(singular) == plural
    assert regular_plural("boy") == "boys", "y behind a vowel stays"


def test_an_irregular_verb_is_read_from_its_dictionary_entry() -> None:
    arrive = verb("arrive", "an|kommen, kommt, ist angekommen")
    assert (arrive.prefix, arrive.infinitive, arrive.third_person) == ("an", "kommen", "kommt")
    assert (arrive.participle, arrive.auxiliary) == ("angekommen", "sein")
    assert arrive.english_past == arrive.english_participle == "arrived"


def test_a_regular_verb_needs_its_infinitives_only() -> None:
    fetch = verb("pick", "ab|holen", particle="up")
    assert (fetch.third_person, fetch.participle, fetch.auxiliary) == ("holt", "abgeholt", "haben")
    assert fetch.lemma == "pick up abholen"


def test_a_past_that_looks_like_the_present_is_known() -> None:
    assert verb("put, put, put", "legen").past_looks_present
    assert not verb("buy, bought, bought", "kaufen").past_looks_present


@pytest.mark.parametrize(
    ("base", "past"),
    [
        ("bake", "baked"),
        ("carry", "carried"),
        ("play", "played"),
        ("hug", "hugged"),
        ("open", "opened"),
        ("wait", "waited"),
        ("fix", "fixed"),
    ],
)
def test_english_pasts_follow_the_spelling(base: str, past: str) -> None:
    assert regular_past(base) == past


@pytest.mark.parametrize(
    ("infinitive", "stem", "third_person", "participle"),
    [
        ("holen", "hol", "holt", "geholt"),
        ("arbeiten", "arbeit", "arbeitet", "gearbeitet"),
        ("wandern", "wander", "wandert", "gewandert"),
        ("besuchen", "besuch", "besucht", "besucht"),
        ("reparieren", "reparier", "repariert", "repariert"),
    ],
)
def test_regular_german_verbs_have_regular_parts(
    infinitive: str, stem: str, third_person: str, participle: str
) -> None:
    assert german_stem(infinitive) == stem
    assert regular_third_person(infinitive) == third_person
    assert regular_participle(infinitive) == participle


def test_an_adjective_takes_its_endings_on_its_stem() -> None:
    dear = adjective("expensive, more expensive", "teuer, teurer", stem="teur")
    assert (dear.german, dear.stem, dear.german_comparative) == ("teuer", "teur", "teurer")
    assert adjective("red", "rot").stem == "rot"
