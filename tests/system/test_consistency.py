"""Answers that contradict each other, or are hard to read, are noticed.

`test_scenarios.py` asks so of every simulated run.
"""

from dataclasses import replace
from typing import Any

import pytest
from consistency import contradictions, hard_to_read

from dragoman.diagnosis.findings import Advice, Figure, Finding


def finding(verdict: str, sentence: str = "So.", *figures: Figure, **more: Any) -> Finding:
    return Finding(verdict, "high", sentence, figures, **more)


AGREED = {
    "duration": finding("1 h", "An hour.", Figure("wall time", 3600.0, "s")),
    "trained": finding("not yet"),
    "devices": finding("mostly waiting", "So.", Figure("computing share", 0.3, "share")),
    "network": finding(
        "network-bound",
        "Of the mean step of 2.5 s it takes 60 %, and computing takes 30 %.",
        Figure("mean step", 2.5, "s"),
        Figure("computing share", 0.3, "share"),
        Figure("exposed network share", 0.6, "share"),
    ),
    "step-time": finding("2.5 s", "The mean step took 2.5 s.", Figure("mean step", 2.5, "s")),
    "traffic": finding("as predicted", "Here the traffic sets the time."),
}


def test_answers_that_agree_are_left_alone() -> None:
    assert contradictions(AGREED) == []


@pytest.mark.parametrize(
    ("key", "changed"),
    [
        ("step-time", {"evidence": [Figure("mean step", 2.6, "s")]}),
        ("step-time", {"evidence": [Figure("mean", 2.6, "s")]}),
        ("step-time", {"evidence": [Figure("mean step", 2500.0, "ms")]}),
        ("step-time", {"sentence": "The mean step took 2.6 s."}),
        ("devices", {"sentence": "Computing or not, computing is 37 % of it."}),
        ("devices", {"verdict": "fully used"}),
        ("traffic", {"sentence": "It is not the traffic."}),
        ("network", {"verdict": "straggler"}),
        ("trained", {"verdict": "yes", "advice": [Advice("Train on.", "dragoman train x")]}),
        ("stragglers", {"evidence": [Figure("waiting for data", 1.0, "s")]}),
    ],
)
def test_what_cannot_both_be_true_is_noticed(key: str, changed: dict[str, Any]) -> None:
    data = Figure("waiting for data", 2.0, "s")
    network = replace(AGREED["network"], evidence=[*AGREED["network"].evidence, data])
    findings = {"stragglers": finding("node2"), **AGREED, "network": network}
    assert contradictions(findings) == []

    assert contradictions({**findings, key: replace(findings[key], **changed)})


@pytest.mark.parametrize(
    "plain",
    ["", "Two. Sentences.", "No stop", "The MFU is low.", " ".join(["word"] * 50) + "."],
)
def test_what_a_student_would_not_read_is_noticed(plain: str) -> None:
    assert hard_to_read({"network": finding("x", plain="Yes: it waits 2.5 s of 3.1 s.")}) == []
    assert hard_to_read({"network": finding("x", plain=plain)})


def test_two_values_for_one_setting_are_noticed() -> None:
    def advised(*commands: str) -> Finding:
        return finding("x", advice=[Advice("Do it.", command) for command in commands])

    line, command = "training.seed = 2", "dragoman train a/config.toml --set training.seed=3"
    assert contradictions({"trained": advised(line), "quality": advised(command)})
    assert not contradictions({"trained": advised(line, command), "quality": advised(command)})


def test_advice_that_would_save_more_than_there_was_is_noticed() -> None:
    advice = [Advice("Do it.", "training.steps = 2", saves_s=1e9)]

    assert contradictions({**AGREED, "traffic": finding("as predicted", advice=advice)})
