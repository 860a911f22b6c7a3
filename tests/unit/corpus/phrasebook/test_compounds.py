import re

import pytest
from unit.corpus.phrasebook.drawing import drawn, said

from dragoman.corpus.phrasebook import compounds
from dragoman.corpus.phrasebook import verbs as v

CONJUNCTIONS = {
    "because": "weil",
    "although": "obwohl",
    "if": "wenn",
    "that": "dass",
    "whether": "ob",
    "and": "und",
    "but": "aber",
}


@pytest.mark.parametrize(
    ("construct", "conjunctions"),
    [
        (compounds.errand, {"because"}),
        (compounds.rest_or_effort, {"because", "although"}),
        (compounds.clothing, {"because"}),
        (compounds.appetite, {"because", "although"}),
        (compounds.purchase, {"because", "although"}),
        (compounds.care, {"because"}),
        (compounds.feeling, {"because"}),
        (compounds.condition, {"if"}),
        (compounds.report, {"that"}),
        (compounds.uncertainty, {"whether"}),
        (compounds.contrast, {"and", "but"}),
    ],
)
def test_two_clauses_are_joined_by_the_same_conjunction_in_both_languages(
    construct, conjunctions
) -> None:
    seen = set()
    for meaning, (source, target) in zip(drawn(construct), said(construct), strict=True):
        english, german = meaning.conjunction
        assert CONJUNCTIONS[english] == german
        assert re.search(rf"\b{english}\b", source, re.I), source
        assert re.search(rf"\b{german}\b", target, re.I), target
        seen.add(english)
    assert seen == conjunctions


def test_who_eats_in_spite_of_it_is_not_hungry() -> None:
    for meaning in drawn(compounds.appetite):
        assert meaning.second.negated == (meaning.conjunction.english == "although")
        assert meaning.first.verb is (
            v.DRINK if meaning.second.complement.english == "thirsty" else v.EAT
        )


def test_finding_makes_happy_and_losing_does_not() -> None:
    for source, _ in said(compounds.feeling):
        assert ("happy" in source) == ("found" in source), source


def test_an_intention_is_an_infinitive_with_zu() -> None:
    for source, target in said(compounds.intention):
        assert re.search(r" to \w+", source), source
        assert re.search(r", .*zu\w* ?\w*en\b|, .*zu\w+n\.|, .* zu \w+n\.", target), target


def test_two_people_who_are_contrasted_do_not_do_the_same() -> None:
    for meaning in drawn(compounds.contrast):
        assert meaning.first.subject != meaning.second.subject
        assert meaning.first.verb is meaning.second.verb


def test_weather_has_no_other_subject_than_it_and_the_sun() -> None:
    for source, _ in said(compounds.weather_report):
        assert re.search(r"\b(it|the sun)\b", source, re.I), source
