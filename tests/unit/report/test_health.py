import pytest

from dragoman.diagnosis.findings import Finding, unknown
from dragoman.report.health import SIGNS, WORDS, health_of


def finding(key: str, verdict: str, advice: str = "") -> Finding:
    return Finding(key, "?", verdict, "high", "A sentence.", (), advice)


@pytest.mark.parametrize(
    ("key", "verdict", "health"),
    [
        ("trained", "yes", "good"),
        ("trained", "not yet", "watch"),
        ("trained", "too early to say", "open"),
        ("overfitting", "yes", "poor"),
        ("devices", "mostly waiting", "poor"),
        ("network", "compute-bound", "good"),
        ("network", "network-bound", "poor"),
        ("learning-rate", "not as set", "watch"),
        ("traffic", "as predicted", "good"),
        ("duration", "2 h", "fact"),
    ],
)
def test_verdicts_are_good_or_bad_news(key, verdict, health):
    assert health_of(finding(key, verdict)) == health


def test_what_is_not_known_is_open_whatever_the_question():
    assert health_of(unknown("network", "?", "nobody looked")) == "open"


def test_a_figure_with_advice_is_worth_a_look():
    assert health_of(finding("padding", "31 %", "Sort by length.")) == "watch"


def test_no_two_healths_look_alike_without_color():
    assert len(set(SIGNS.values())) == len(SIGNS)
    assert len(set(WORDS.values())) == len(WORDS)
