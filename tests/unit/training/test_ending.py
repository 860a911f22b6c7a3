import dataclasses
import errno
from pathlib import Path

import pytest

from dragoman.config import parse_config
from dragoman.errors import (
    DivergedError,
    LostPeerError,
    NamedRank,
    OutOfMemoryError,
    RunError,
    StorageError,
    WeightsDifferError,
)
from dragoman.telemetry.events import AttemptEnded
from dragoman.training.ending import failed, planned_ending, preempted
from dragoman.training.interruption import Stop, StopRequest
from dragoman.training.state import RunState

HOST = NamedRank(1, "n2")


@pytest.mark.parametrize(
    ("settings", "state", "cause"),
    [
        (["training.steps=7"], RunState(step=7), "steps"),
        (["training.steps=7"], RunState(step=6), None),
        (["training.steps=90", "training.epochs=2"], RunState(step=40), "epochs"),
        (["training.hours=2"], RunState(step=1, elapsed_s=7200.0), "hours"),
        (["training.patience=3"], RunState(step=1, evaluations_since_best=3), "patience"),
        (["training.patience=3"], RunState(step=1, evaluations_since_best=2), None),
    ],
)
def test_stop_rules_end_a_run_with_their_name(digits, settings, state, cause):
    config = parse_config(digits.read_text(encoding="utf-8"), "x", settings)
    last_step = 40 if config.training.epochs else None
    ending = planned_ending(config, last_step, state)
    found = (ending.state, ending.cause, ending.step) if ending else None
    assert found == (("finished", cause, state.step) if cause else None)


@pytest.mark.parametrize("cause", ["signal", "notice"])
def test_who_was_asked_to_stop_is_a_fact_of_the_ending(cause):
    ending = preempted(9, Stop(StopRequest(cause, "any words"), HOST), ranks=2)
    assert dataclasses.replace(ending, reason="") == AttemptEnded(
        9, "preempted", "", cause, culprit_rank=1, culprit_host="n2"
    )
    assert preempted(9, Stop(StopRequest(cause, "any words"), None), 2).culprit_rank is None


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (LostPeerError("gone", culprit=HOST), "lost-rank"),
        (OutOfMemoryError("too small", culprit=HOST), "out-of-memory"),
        (WeightsDifferError("bit flip", culprit=HOST), "weights-differ"),
        (RunError("broken", culprit=HOST), "error"),
    ],
)
def test_a_failure_carries_its_cause_and_its_culprit(error, cause):
    ending = failed(5, error)
    assert (ending.state, ending.cause, ending.step) == ("failed", cause, 5)
    assert (ending.culprit_rank, ending.culprit_host) == HOST


def test_a_failure_of_no_single_rank_has_no_culprit(tmp_path):
    for error, cause in (
        (DivergedError("not finite"), "diverged"),
        (StorageError(tmp_path, "writing", "full"), "error"),
        (ZeroDivisionError("a bug"), "error"),
        (KeyboardInterrupt(), "error"),
    ):
        ending = failed(5, error)
        assert (ending.cause, ending.culprit_rank, ending.culprit_host) == (cause, None, "")


@pytest.mark.parametrize(
    ("error", "could_not_write"),
    [
        (StorageError(Path("x"), "saving", "No space left on device"), True),
        (OSError(errno.ENOSPC, "No space left on device"), True),
        (OSError(errno.ECONNRESET, "Connection reset by peer"), False),
        (RunError("broken"), False),
    ],
)
def test_a_full_disk_is_a_fact_of_the_ending(error, could_not_write):
    assert failed(9, error).could_not_write == could_not_write
