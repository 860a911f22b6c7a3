"""What is read from a run that was recorded in format 1, tests/data/format-1-run."""

import math
from pathlib import Path

import numpy as np
import pytest

from dragoman.rundir import RunDir
from dragoman.telemetry.events import (
    AttemptEnded,
    AttemptStarted,
    Incident,
    SensorReading,
    SensorsFound,
    StepDone,
)
from dragoman.telemetry.format_1 import upgraded
from dragoman.telemetry.read.events import read_events
from dragoman.telemetry.read.reader import read_tables
from dragoman.telemetry.read.tables import events_of_attempt

RUN = RunDir(Path(__file__).parents[2] / "data" / "format-1-run")


@pytest.fixture(scope="module")
def tables():
    return read_tables(RUN)


def test_every_line_is_read(tables):
    assert tables.unread_lines == 0
    assert set(tables[AttemptStarted]["format"].tolist()) == {1}
    assert len(tables[StepDone]) == 16


def test_incidents_have_their_category_and_facts(tables):
    short, skipped, back = events_of_attempt(Incident, tables, 2)[:3]
    assert (short.category, short.ranks, short.pieces) == ("out-of-memory", (1,), 4)
    assert (skipped.category, skipped.ranks) == ("update-skipped", (0,))
    assert (back.category, back.rollback_step, back.rate_factor) == ("rollback", 2, 0.5)
    assert back.message.startswith("the loss has exploded")


def test_ends_have_their_cause_and_culprit(tables):
    (failed,) = events_of_attempt(AttemptEnded, tables, 1)
    assert (failed.state, failed.culprit_rank, failed.culprit_host) == ("failed", 1, "node-b")
    finished = events_of_attempt(AttemptEnded, tables, 2)[0]
    assert (finished.state, finished.cause, finished.culprit_rank) == ("finished", "steps", None)


def test_sensors_have_cores_and_link_rates(tables):
    found = events_of_attempt(SensorsFound, tables, 1)[0]
    assert found.cores == 16
    assert found.link_bytes_per_s == {"eth0": 25_000 * 1e6 / 8}
    assert found.about["cpu"] == "16 logical cores"


def test_tokens_that_are_not_json_are_numbers(tables):
    steps = tables[StepDone]
    odd = steps.where(~steps["updated"])
    assert np.isnan(odd["loss"]).tolist() == [True, True]
    assert odd["gradient_norm"].tolist() == [math.inf, math.inf]
    assert tables[SensorReading].groups["values"]["cpu/percent"].tolist() == [12.5, 12.5]


def test_one_by_one_gives_the_same_incidents(tables):
    read = [r.stamped.event for r in read_events(RUN, kinds=[Incident])]
    assert read == events_of_attempt(Incident, tables, 2)


def test_events_of_format_2_stay_as_they_are():
    ended = {"kind": "attempt-ended", "state": "failed", "reason": "rank 1 on a", "cause": "error"}
    assert upgraded(ended) == ended


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("training.steps = 4 are done", "steps"),
        ("training.hours = 2 are over", "hours"),
        ("training.epochs = 2 are done", "epochs"),
        ("no better bleu in 15 evaluations", "patience"),
    ],
)
def test_limits_are_known_by_their_phrase(reason, cause):
    ended = {"kind": "attempt-ended", "state": "finished", "reason": reason}
    assert upgraded(ended)["cause"] == cause
    assert "cause" not in upgraded(ended | {"state": "preempted"})


@pytest.mark.parametrize(
    ("pieces", "count"), [("halves", 2), ("eighths", 8), ("16 pieces a micro-batch", 16)]
)
def test_pieces_of_a_step_that_did_not_fit(pieces, count):
    what = f"rank 0 on a, rank 2 on b ran out of memory; the step is repeated in {pieces}"
    incident = upgraded({"kind": "trouble", "what": what})
    assert (incident["ranks"], incident["pieces"]) == ([0, 2], count)
