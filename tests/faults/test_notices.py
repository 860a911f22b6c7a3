"""A notice of the cloud on one host stops all ranks, with everything saved and a reason."""

import os
import socket

import pytest
from metadata_service import ACTION, STOP, TOKEN, metadata_service
from processes import ENDLESS, start_dragoman, wait_for_step
from recorded import events

from dragoman.checkpoints.checkpoint import Checkpoint
from dragoman.checkpoints.finding import verify
from dragoman.rundir import RunDir, read_json
from dragoman.telemetry.events import AttemptEnded

pytestmark = pytest.mark.timeout(240)


def test_a_host_that_will_be_taken_away_stops_the_run_after_saving(digits, tmp_path):
    run = RunDir(tmp_path / "run")
    with metadata_service() as service:
        told = {
            "cloud": "aws",
            "metadata_address": service.address,
            "poll_every_s": 0.05,
        }
        preemption = [f"preemption.{key}={value}" for key, value in told.items()]
        settings = [word for setting in preemption for word in ("--set", setting)]
        process = start_dragoman(
            *("train", digits, "--run", run.root, "--workers", 2, *ENDLESS, *settings)
        )
        wait_for_step(run.root, 3)
        service.token = "has run out"
        service.notice = STOP
        output, errors = process.communicate(timeout=120)
    assert process.returncode == os.EX_TEMPFAIL, errors
    status = read_json(run.status)
    assert status["state"] == "preempted"
    assert status["reason"] in output
    ends = events(run, AttemptEnded)
    assert [(end.cause, end.culprit_rank) for end in ends] == [("notice", 0)] * 2
    assert {end.culprit_host for end in ends} == {socket.gethostname()}
    saved = Checkpoint((run.checkpoints / "latest").resolve())
    verify(saved)
    assert saved.step == status["step"]
    # One host, one thread: a second worker on it asks nobody, or there would be four. Three where
    # the machine was too busy to answer in time.
    assert service.asked.count(("PUT", TOKEN)) in (2, 3)
    assert service.asked[-1] == ("GET", ACTION)
