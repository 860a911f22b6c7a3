import math
from typing import get_args

from dragoman.diagnosis.findings import (
    HEALTH_SIGNS,
    HEALTH_WORDS,
    Figure,
    Health,
    recorded,
    unknown,
)


def test_no_two_healths_look_alike_without_color():
    for shown in (HEALTH_SIGNS, HEALTH_WORDS):
        assert set(shown) == set(get_args(Health))
        assert len(set(shown.values())) == len(shown)


def test_an_answer_that_is_not_known_gives_its_reason_and_claims_nothing():
    found = unknown("no step has been recorded")

    assert (found.verdict, found.confidence) == ("not known", "none")
    assert found.sentence == "Not known, because no step has been recorded."
    assert found.advice_text == ""


def test_figures_without_a_value_are_left_out():
    named, zero = Figure("schedule", "noam", ""), Figure("lost steps", 0, "steps")

    assert recorded(named, None, Figure("cost", None, "EUR"), zero) == [named, zero]
    assert recorded(Figure("power", math.nan, "W")) == []
