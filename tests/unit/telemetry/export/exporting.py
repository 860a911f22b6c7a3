"""Gives a few events to exporters in a process of its own, as real packages want it."""

import subprocess
import sys

# Trains nothing: two steps, an evaluation, a reading and the end, given to the exporters as the
# writer gives them.
PROGRAM = """
import math, sys
from pathlib import Path
from dragoman.config import load_config
from dragoman.rundir import RunDir
from dragoman.telemetry.events import *
from dragoman.telemetry.export.exporters import open_exporters
from dragoman.telemetry.record.writer import EventWriter

root, *overrides = sys.argv[1:]
config = load_config(Path(root) / "config.toml", overrides)
run = RunDir(Path(root))
with open_exporters(config, run, "node1", leads=True) as exporters:
    events = EventWriter(run.events_of(1, 0), exporters)
    parts = {"data": 0.25}
    events.emit(StepDone(1, 0.5, 3.5, 100, 1e-3, math.inf, True, 0.5, parts))
    events.emit(Evaluated(1, 2.5, None, 31.5, None, "", "", True, 1.0))
    events.emit(SensorReading({"gpu/0/power_w": 251.5}))
    events.emit(AttemptEnded(1, "finished", "steps are done"))
    events.close()
"""


def export(run, *overrides, home):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(run.root), *overrides],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin", "HOME": str(home)},
    )
    assert "warning" not in done.stderr, done.stderr
