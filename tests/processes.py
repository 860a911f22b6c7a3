"""Dragoman as a real process, watched from outside."""

import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil

from dragoman.rundir import RunDir
from dragoman.telemetry.events import StepDone
from dragoman.telemetry.read.events import read_events

ENDLESS = ["--set", "training.steps=100000", "--set", "evaluation.every_steps=100000"]
ENDLESS += [
    "--skip-check"
]  # over a network such a run would wait for long enough to be asked about


def start_dragoman(
    *arguments: object, env: dict[str, str] | None = None, **more: object
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "dragoman", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env or os.environ | {"OMP_NUM_THREADS": "1"},
        **more,
    )


def dragoman(
    *arguments: object, typed: str = "", **more: object
) -> subprocess.CompletedProcess[str]:
    process = start_dragoman(*arguments, **more)
    output, errors = process.communicate(typed)
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def sentence(done: subprocess.CompletedProcess[str], code: int) -> str:
    """The one with which a command has refused, with this exit code and without a traceback."""
    assert done.returncode == code, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr + done.stdout
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, done.stderr
    return errors[0]


def steps(run: Path) -> dict[int, StepDone]:
    """Step -> what was recorded of it; of repeated steps, the latest."""
    events = [recorded.stamped.event for recorded in read_events(RunDir(run), rank=0)]
    return {event.step: event for event in events if isinstance(event, StepDone)}


def losses(run: Path) -> dict[int, float]:
    return {number: step.loss for number, step in steps(run).items()}


def wait_until(condition, seconds: float = 100) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


def wait_for_step(run: Path, step: int) -> None:
    wait_until(lambda: max(losses(run), default=0) >= step)


def worker_processes(run: Path) -> list[int]:
    """Of a run started with several workers: their processes, by rank."""
    found = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            name = re.fullmatch(r"dragoman-(\d+)", process.name())
            if name and process.cmdline()[-2:] == ["--run", str(run)]:
                found[int(name[1])] = process.pid
    return [found[rank] for rank in sorted(found)]
