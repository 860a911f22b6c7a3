"""`sync.mode` auto on links that become slow while it trains."""

import signal
import statistics

import pytest
from processes import ENDLESS, start_dragoman, wait_for_step, wait_until
from recorded import events

from dragoman.config import SyncSettings
from dragoman.rundir import RunDir
from dragoman.telemetry.events import StepDone, SyncChosen

pytestmark = pytest.mark.timeout(400)

PREEMPTED = 75


def test_a_link_that_becomes_slow_is_noticed_and_fewer_bytes_are_sent(
    digits, host_list, nodes, tmp_path
):
    run = tmp_path / "runs" / "auto"
    process = start_dragoman(
        *("train", digits, "--run", run, "--hosts", host_list(2), *ENDLESS),
        *("--set", "sync.mode=auto", "--set", "checkpoints.every_steps=100000"),
        # So that a step computes for longer than the latency of its messages.
        *("--set", "training.tokens_per_update=2000"),
    )
    home = RunDir(tmp_path / "node1" / "runs" / "auto")

    def chosen():
        return [SyncSettings(**event.settings) for event in events(home, SyncChosen)]

    try:
        wait_for_step(run, 30)
        assert not chosen()[-1].is_local
        for node in ("node1", "node2"):
            nodes.rate(node, "1mbit")
        wait_until(lambda: chosen()[-1].is_local, seconds=150)
        changed_at = events(home, SyncChosen)[-1].step
        wait_until(lambda: events(home, StepDone)[-1].step > changed_at + 30)
    finally:
        for node in ("node1", "node2"):
            nodes.rate(node, "none")
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=120)
    assert process.returncode == PREEMPTED, output + errors
    assert "sync.mode = auto: hosts send 1 Mbit/s" in output
    steps = {event.step: event.step_s for event in events(home, StepDone)}
    # One slow step may be enough for it to look again.
    slow = max(steps[step] for step in range(changed_at - 15, changed_at + 1))
    after = statistics.median(steps[step] for step in range(changed_at + 13, changed_at + 28))
    assert after < slow / 4
