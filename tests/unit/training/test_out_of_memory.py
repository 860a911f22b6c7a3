import socket

import pytest
import torch
from injection import fail_at, memory_for
from recorded import events

from dragoman.distributed.group import Group
from dragoman.errors import OutOfMemoryError
from dragoman.rundir import RunDir
from dragoman.telemetry.events import (
    AttemptEnded,
    Incident,
    StepDone,
)

ALONE = Group(0, 1, 0, torch.device("cpu"))


@pytest.mark.parametrize("phase", ["accumulation", "forward", "backward"])
def test_running_out_of_memory_changes_no_loss_and_is_told(run_with, caplog, phase):
    caplog.set_level("INFO", "dragoman")
    settings = ["training.steps=6", "model.dropout=0.0", "evaluation.every_steps=100"]
    with fail_at(ALONE, rank=0, step=3, phase=phase, times=2):
        _, run = run_with(*settings)
    _, undisturbed = run_with(*settings, name="undisturbed")
    for one, other in zip(events(run, StepDone), events(undisturbed, StepDone), strict=True):
        assert one.loss == pytest.approx(other.loss, abs=5e-6)
        assert one.gradient_norm == pytest.approx(other.gradient_norm, rel=1e-5)
    first, second = [event for event in events(run, Incident) if event.step == 3]
    assert [(e.category, e.ranks, e.pieces) for e in (first, second)] == [
        ("out-of-memory", (0,), 2),
        ("out-of-memory", (0,), 4),
    ]
    assert f"step 3: {first.message}" in caplog.text


def test_dropout_of_pieces_is_drawn_for_each_of_them(run_with):
    settings = ["training.steps=3", "model.dropout=0.3"]
    losses = []
    for name in ("first", "second"):
        with fail_at(ALONE, rank=0, step=2, phase="forward"):
            _, run = run_with(*settings, name=name)
        losses.append([event.loss for event in events(run, StepDone)])
    _, undisturbed = run_with(*settings, name="undisturbed")
    whole = [event.loss for event in events(undisturbed, StepDone)]
    assert losses[0] == losses[1]
    assert losses[0][0] == whole[0]
    assert losses[0][1] != whole[1]


def test_a_model_too_large_for_a_single_pair_stops_the_run_in_one_sentence(run_with, tmp_path):
    with (
        memory_for(ALONE, rank=0, step=2, pairs=0),
        pytest.raises(OutOfMemoryError, match=r"with a single pair at a time; start a new run"),
    ):
        run_with("training.steps=4")
    (end,) = events(RunDir(tmp_path / "run"), AttemptEnded)
    assert (end.state, end.cause, end.culprit_rank) == ("failed", "out-of-memory", 0)
    assert end.culprit_host == socket.gethostname()
