"""Hosts whose wall clocks are wrong train as others do, and the run records by how much.

A network namespace has no wall clock of its own, so the processes of one node run under
libfaketime: `python =` of that node names a script that shifts the wall clock and leaves the
monotonic one alone.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from processes import start_dragoman

from dragoman.rundir import RunDir, read_json
from dragoman.telemetry.events import AttemptStarted, ClockOffset
from dragoman.telemetry.read.events import read_events

pytestmark = pytest.mark.timeout(240)

HOUR_S = 3600.0
ENDS_WITHIN_S = 180

# libfaketime 0.9.10 takes what `time.sleep` waits for on the monotonic clock for a wall-clock time,
# and the call fails. Python imports a module of this name at its start.
SITECUSTOMIZE = """
import select, time
time.sleep = lambda seconds: select.select([], [], [], seconds)
"""


@pytest.fixture
def python_ahead(tmp_path):
    """Writes a Python whose wall clock, and that of all it starts, is ahead: python_ahead(40)."""
    # The one for programs with threads.
    libraries = list(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not libraries:
        pytest.skip("libfaketime is not installed; install it with: apt-get install faketime")

    def write(seconds: float) -> str:
        folder = tmp_path / "ahead"
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(SITECUSTOMIZE, encoding="utf-8")
        script = folder / "python"
        script.write_text(
            "#!/bin/sh\n"
            f"export LD_PRELOAD={libraries[0]} PYTHONPATH={folder}\n"
            f"export FAKETIME={seconds:+.0f} FAKETIME_DONT_FAKE_MONOTONIC=1\n"
            f'exec {sys.executable} "$@"\n',
            encoding="utf-8",
        )
        script.chmod(0o755)
        return str(script)

    return write


@pytest.mark.parametrize(
    ("wrong", "ahead_s"), [("node2", 40.0), ("node2", 2 * HOUR_S), ("node1", 2 * HOUR_S)]
)
def test_a_host_with_a_wrong_wall_clock_trains_to_the_end_without_a_complaint(
    digits, host_list, processes_of, python_ahead, tmp_path, wrong, ahead_s
):
    run = tmp_path / "runs" / "skewed"
    hosts = host_list(2, **{wrong: {"python": python_ahead(ahead_s)}})
    process = start_dragoman("train", digits, "--run", run, "--hosts", hosts)
    try:
        output, errors = process.communicate(timeout=ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()  # then the agents end by themselves
        output, errors = process.communicate()
        pytest.fail(f"the run did not end\n{output}{errors}")
    assert process.returncode == 0, output + errors
    assert "2 worker(s) on cpu" in output
    # The check at the start warns of the clock itself, and of nothing else.
    said = re.sub("warning: .* its clock is .*\n", "", output + errors)
    assert not re.search("error|warning|Traceback", said), said
    assert read_json(RunDir(run).status)["state"] == "finished"
    assert processes_of("node1") == processes_of("node2") == {}

    # Rank 1 is on node2; what its wall clock shows is compared with that of rank 0.
    offset_s = ahead_s if wrong == "node2" else -ahead_s
    compared = [event for event in events_of(run, rank=1) if isinstance(event, ClockOffset)]
    assert compared
    for clocks in compared:
        assert clocks.offset_s == pytest.approx(offset_s, abs=2.0)
        # One kernel has one monotonic clock, so this shows that only the wall clock was shifted.
        assert clocks.monotonic_offset_s == pytest.approx(0.0, abs=2.0)
    began_at = {rank: start_of(run, rank) for rank in (0, 1)}
    assert began_at[1] - began_at[0] == pytest.approx(offset_s, abs=20.0)


def events_of(run, rank):
    return [recorded.stamped.event for recorded in read_events(RunDir(run), rank=rank)]


def start_of(run, rank):
    """On the wall clock of the rank's host, as it wrote it down."""
    return next(
        recorded.stamped.wall_at
        for recorded in read_events(RunDir(run), rank=rank)
        if isinstance(recorded.stamped.event, AttemptStarted)
    )
