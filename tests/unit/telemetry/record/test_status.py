import json
import math

import pytest

from dragoman.rundir import RunDir, read_json
from dragoman.telemetry.events import (
    AttemptEnded,
    AttemptStarted,
    Evaluated,
    Stamped,
    StepDone,
)
from dragoman.telemetry.record.status import StatusFile, read_status


def step(number, loss=3.25):
    return StepDone(number, 0.5, loss, 100, 1e-3, 0.7, True, 0.5)


def test_the_status_follows_the_events(tmp_path):
    run = RunDir(tmp_path)
    status = StatusFile(run)
    status(Stamped(1.0, 1.0, AttemptStarted(2, 0, 4, "host", "cpu", 11)))
    assert read_json(run.status)["state"] == "training"
    assert read_json(run.status)["step"] == 10
    status(Stamped(2.0, 2.0, step(11)))
    status(Stamped(3.0, 3.0, Evaluated(11, 2.0, None, 30.0, 50.0, "", "", True, 1.0)))
    status(Stamped(4.0, 4.0, AttemptEnded(12, "finished", "steps are done")))
    content = read_json(run.status)
    assert content["state"] == "finished"
    assert (content["step"], content["attempt"], content["ranks"]) == (12, 2, 4)
    assert (content["bleu"], content["heartbeat_at"]) == (30.0, 4.0)


def test_a_bleu_that_comes_later_takes_none_away(tmp_path):
    run = RunDir(tmp_path)
    status = StatusFile(run)
    status(Stamped(1.0, 1.0, Evaluated(10, 2.0, None, 30.0, 50.0, "", "", True, 1.0)))
    status(Stamped(2.0, 2.0, Evaluated(20, 1.5, None, None, None, "", "", False, 1.0)))
    status(Stamped(3.0, 3.0, AttemptEnded(20, "preempted", "")))
    assert (read_status(run).validation_loss, read_status(run).bleu) == (1.5, 30.0)


def test_a_loss_that_is_not_finite_is_null_in_the_file(tmp_path):
    run = RunDir(tmp_path)
    status = StatusFile(run)
    for event in (step(1, math.nan), Evaluated(1, math.inf, None, 0.0, 0.0, "", "", False, 1.0)):
        status(Stamped(1.0, 1.0, event))
    status(Stamped(2.0, 2.0, AttemptEnded(1, "failed", "")))
    content = json.loads(run.status.read_text(), parse_constant=pytest.fail)
    assert (content["loss"], content["validation_loss"]) == (None, None)
    assert read_status(run).loss is None
