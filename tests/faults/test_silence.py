"""A rank that is killed, stopped or unplugged is named in time, and nothing is left running."""

import os
import re
import signal

import pytest
from processes import (
    ENDLESS,
    dragoman,
    start_dragoman,
    wait_for_step,
    wait_until,
    worker_processes,
)
from recorded import events

from dragoman.distributed.pulse import IN_A_STEP
from dragoman.rundir import RunDir, read_json
from dragoman.telemetry.events import AttemptEnded

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=pytest.mark.cluster)]
)
def test_a_killed_and_a_stopped_rank_are_named(digits, tmp_path, number):
    run = tmp_path / "run"
    process = start_dragoman("train", digits, "--run", run, "--workers", 2, *ENDLESS)
    wait_for_step(run, 60)  # long enough for beats from inside a step
    os.kill(worker_processes(run)[1], number)
    _, errors = process.communicate(timeout=200)
    assert process.returncode == 1
    assert worker_processes(run) == []
    how = {signal.SIGKILL: "was ended by SIGKILL", signal.SIGSTOP: "was stopped for 5 s, and ended"}
    said = re.search(rf"rank 1 on \S+ {how[number]}[^:\n]*: it was in (\w+)", errors)
    assert said, errors
    assert said[1] in (*IN_A_STEP, "checkpoint")
    assert "it stood at" in errors
    assert re.search(r"meanwhile: rank 0 on \S+ in \w+", errors), errors
    assert "the same command resumes from the newest checkpoint" in errors
    assert "Traceback" not in errors

    status = read_json(RunDir(run).status)
    assert status["state"] == "failed"
    ended = events(RunDir(run), AttemptEnded)[-1]
    assert (ended.cause, ended.culprit_rank) == ("lost-rank", 1)
    more = dragoman(
        "train",
        digits,
        "--run",
        run,
        "--workers",
        2,
        "--set",
        f"training.steps={status['step'] + 3}",
    )
    assert more.returncode == 0, more.stderr


@pytest.mark.cluster
def test_a_rank_that_is_stopped_before_the_ranks_have_met_holds_nobody_up(digits, tmp_path):
    """The others wait for it where they meet, and have no pulse of it yet."""
    run = tmp_path / "run"
    process = start_dragoman("train", digits, "--run", run, "--workers", 2, *ENDLESS)
    wait_until(lambda: len(worker_processes(run)) == 2)
    os.kill(worker_processes(run)[1], signal.SIGSTOP)
    _, errors = process.communicate(timeout=200)
    assert process.returncode == 1
    assert worker_processes(run) == []
    assert re.search(r"rank 1 on \S+ was stopped for 5 s, and ended", errors), errors
