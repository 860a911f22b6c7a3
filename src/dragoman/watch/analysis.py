"""The report of a run that goes on, made by a process of its own, as often as its cost allows.

    python -m dragoman.watch.analysis RUN PARENT NICENESS

reads the run and writes what it made to standard output. The process is short, so that the memory
of a long run's tables is free again; it is nice, uses one core, and ends with the watcher.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from pydantic import ValidationError

from dragoman.distributed.parent import ParentWatch
from dragoman.errors import DragomanError
from dragoman.report.content import Content, Report
from dragoman.rundir import RunDir

USUAL_SHARE = 0.04
"""Of a core, over time."""
URGENT_SHARE = 0.1
"""The same where something has happened that may change an answer."""
LEAST_PAUSE_S = 1.0
NICENESS = 10
"""About a tenth of a core on a machine that is busy with training."""
FIRST_NICENESS = 5
"""Of the first report, for which somebody waits."""
CLOSE_TIMEOUT_S = 5.0
MOST_COMPLAINT_BYTES = 2000


class Made(Content):
    """What the process has made."""

    cpu_s: float
    report: Report | None
    error: str
    """Why there is no report, in a sentence; empty: there is one."""


class Analysis:
    """Starts the process when there is news and it is due, and collects its result; never waits."""

    def __init__(self, run: RunDir, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._run, self._monotonic = run, monotonic
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None
        self._complaints: IO[bytes] | None = None
        self._started_at = 0.0
        self._cpu_s = 0.0
        self._ended_at: float | None = None
        self._has_news = self._is_urgent = True

    def notice(self, is_urgent: bool = False) -> None:
        """Something is new in the run, or has happened that may change an answer."""
        self._has_news = True
        self._is_urgent |= is_urgent

    def poll(self) -> Made | None:
        """Returns what was made since the last call, if anything."""
        made = self._collect()
        if self._process is None and self._has_news and self._is_due():
            try:
                self._start()
            except OSError as error:  # no space for its output, or no more processes
                self._forget()
                reason = f"no report can be made ({error.strerror or error}); it is tried again"
                return made or Made(cpu_s=0.0, report=None, error=f"{self._run.root}: {reason}")
            self._has_news = self._is_urgent = False
        return made

    def close(self) -> None:
        if self._process:
            self._process.kill()
            # It may hang in a read from a dead network disk; then the system ends it later.
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(CLOSE_TIMEOUT_S)
            self._forget()

    def _is_due(self) -> bool:
        if self._ended_at is None:
            return True
        share = URGENT_SHARE if self._is_urgent else USUAL_SHARE
        due_at = max(self._started_at + self._cpu_s / share, self._ended_at + LEAST_PAUSE_S)
        return self._monotonic() >= due_at

    def _start(self) -> None:
        self._started_at = self._monotonic()
        # Files rather than pipes: nobody has to read while it writes.
        self._output = tempfile.TemporaryFile()  # noqa: SIM115
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115
        niceness = FIRST_NICENESS if self._ended_at is None else NICENESS
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(self._run.root), str(os.getpid()), str(niceness)],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._complaints,
            # A terminal's Ctrl-C is for the watcher, which ends this process itself.
            start_new_session=True,
            env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )

    def _collect(self) -> Made | None:
        if self._process is None or (code := self._process.poll()) is None:
            return None
        self._ended_at = self._monotonic()
        assert self._output
        assert self._complaints
        self._output.seek(0)
        try:
            made = Made.model_validate_json(self._output.read())
        except ValidationError:
            self._complaints.seek(0)
            said = (
                self._complaints.read()[-MOST_COMPLAINT_BYTES:].decode(errors="replace").split("\n")
            )
            last = next((line for line in reversed(said) if line.strip()), "")
            made = Made(
                cpu_s=self._ended_at - self._started_at,
                report=None,
                error=f"{self._run.root}: the diagnosis ended with code {code} ({last.strip()}); "
                f"try dragoman report {self._run.root}",
            )
        self._cpu_s = made.cpu_s
        self._forget()
        return made

    def _forget(self) -> None:
        for file in (self._output, self._complaints):
            if file:
                file.close()
        self._process = self._output = self._complaints = None


def make(run: RunDir) -> Made:
    # What the watcher itself never needs, it need not wait for at its start.
    from dragoman.report.write import read_report  # noqa: PLC0415

    report, error = None, ""
    try:
        report = read_report(run)
    except DragomanError as refusal:
        error = str(refusal)
    except OSError as refusal:  # removed while it was read
        error = f"{run.root}: cannot be read ({refusal.strerror or refusal}); it is tried again"
    return Made(cpu_s=time.process_time(), report=report, error=error)


def main(run: str, parent: str, niceness: str) -> None:
    ParentWatch()
    if os.getppid() != int(parent):
        return
    os.nice(int(niceness))
    sys.stdout.write(make(RunDir(Path(run))).model_dump_json())


if __name__ == "__main__":
    main(*sys.argv[1:])
