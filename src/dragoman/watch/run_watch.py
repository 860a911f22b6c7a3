"""Follows one run directory: files that grow come in, what is to be shown goes out.

Nothing is ever written into the run, and no process of it is spoken to.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import ValidationError

from dragoman.config import Config
from dragoman.diagnosis.questions import question_of
from dragoman.diagnosis.run.record import read_members, refuse_other_folders
from dragoman.diagnosis.run.settings import read_settings
from dragoman.errors import CorruptFileError, DragomanError
from dragoman.report.content import Report
from dragoman.rundir import RunDir
from dragoman.telemetry.events import AttemptStarted
from dragoman.telemetry.read.events import refuse_newer_format
from dragoman.telemetry.record.status import Status, read_status
from dragoman.watch.analysis import Analysis
from dragoman.watch.content import Now, VerdictChange, Watched
from dragoman.watch.event_tail import EventTail
from dragoman.watch.live import LiveRun, Surroundings

MOST_CHANGES = 500
"""Answers change some dozen times in a run; beyond this the oldest are forgotten."""

Value = TypeVar("Value")


class RunWatch:
    """What is known of one run. Not for several threads at once.

    `refresh` reads what was added to the run's records since the last call, which takes
    milliseconds, and collects the report that a process of its own makes beside it, if one is
    ready; it never waits for one. Call it about once a second.
    """

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._analysis = Analysis(run)
        self._report: Report | None = None
        self._report_error = ""
        self._changes: list[VerdictChange] = []
        self._config = _Read[Config | None](run.config, lambda: read_settings(run.config)[0])
        self._status = _Read(run.status, lambda: _status_of(run))
        self._members = _Read(run.manifest, lambda: read_members(run))
        self._identity: object = None
        self._folder_stamp: object = None
        self._signs: object = None
        self._forget()

    def refresh(self) -> Watched:
        """Never raises for what is wrong with a run directory: `Now.trouble` says it."""
        at = time.time()
        trouble = ""
        try:
            self._read(at)
        except DragomanError as error:
            trouble = str(error)
        except OSError as error:
            named = os.fsdecode(error.filename or self._run.root)
            trouble = f"{named}: cannot be read ({error.strerror or error}); it is tried again"
        if made := self._analysis.poll():
            self._report_error = made.error
            if made.report:
                self._note_changes(made.report)
                self._report = made.report
        now = self._now(at, trouble or self._report_error or self._unreadable())
        signs = now.state, trouble, *self._live.signs()
        if self._signs not in (None, signs):
            self._analysis.notice(is_urgent=True)
        self._signs = signs
        return Watched(now=now, report=self._report, changes=list(self._changes))

    def close(self) -> None:
        """Ends the process that makes a report, if there is one."""
        self._analysis.close()

    def _read(self, at: float) -> None:
        refuse_other_folders(self._run)
        identity = _identity(self._run)
        if identity != self._identity:
            if self._identity is not None:
                self._forget()
                self._report, self._changes = None, []
                self._analysis.close()  # what it makes is of the other run
            self._identity = identity
            self._analysis.notice(is_urgent=True)
            if report := _written_report(self._run):
                self._note_changes(report)
                self._report = report
        folder_stamp = self._run.root.stat().st_mtime_ns
        if folder_stamp != self._folder_stamp:  # status, scores or settings were written
            self._folder_stamp = folder_stamp
            self._analysis.notice()
        for added in self._tail.added():
            for stamped in added.events:
                if isinstance(stamped.event, AttemptStarted):
                    refuse_newer_format(self._run, stamped.event.format)
            self._live.add(*added, at)
            self._analysis.notice()
        self._live.notice_silence(at)

    def _now(self, at: float, trouble: str) -> Now:
        config: Config | None = None
        try:
            config = self._config.value()
        except (DragomanError, OSError) as error:
            trouble = trouble or str(error)
        about = Surroundings(
            run=self._run,
            config=config,
            members=self._members.value() or {},
            status=self._status.value() or Status(),
            report=self._report,
            trouble=trouble,
        )
        return self._live.now(at, about)

    def _forget(self) -> None:
        self._tail, self._live = EventTail(self._run), LiveRun()

    def _unreadable(self) -> str:
        """Returns what the report had to leave out. A line that is just being written is torn at
        that moment, so torn lines of a run in progress are no trouble."""
        if self._report is None:
            return ""
        is_training = self._report.state.name == "training"
        return " ".join(
            sentence
            for sentence in self._report.unreadable
            if not (is_training and sentence.startswith(f"{self._run.events}: "))
        )

    def _note_changes(self, report: Report) -> None:
        verdicts = {change.key: change for change in self._changes}
        for answer in (*report.answers, *report.also):
            before = verdicts.get(answer.key)
            same = before and before.verdict == answer.verdict
            # A figure, such as the time that passed, is another in every report.
            is_figure = before and before.health == answer.health == "fact"
            if before and before.health == answer.health and (same or is_figure):
                continue
            self._changes.append(
                VerdictChange(
                    key=answer.key,
                    title=question_of(answer.key).title,
                    verdict=answer.verdict,
                    health=answer.health,
                    sentence=answer.plain or answer.sentence,
                    before=before.verdict if before else "",
                    at=report.read_at,
                )
            )
        del self._changes[:-MOST_CHANGES]


class _Read(Generic[Value]):
    """A small file, read again when it was written anew; what is wrong with it is raised again."""

    def __init__(self, path: Path, read: Callable[[], Value]) -> None:
        self._path, self._read = path, read
        self._stamp: object = ()
        self._value: Value | None = None
        self._error: Exception | None = None

    def value(self) -> Value | None:
        """None: there is no such file."""
        try:
            state = self._path.stat()
        except OSError:
            self._stamp, self._value, self._error = (), None, None
            return None
        stamp = state.st_ino, state.st_mtime_ns, state.st_size
        if stamp != self._stamp:
            self._stamp, self._error = stamp, None
            try:
                self._value = self._read()
            except (DragomanError, OSError) as error:
                self._value, self._error = None, error
        if self._error:
            raise self._error
        return self._value


def _status_of(run: RunDir) -> Status:
    try:
        return read_status(run)
    except CorruptFileError:  # written in place on a full disk; the events say the same
        return Status()


def _written_report(run: RunDir) -> Report | None:
    """Returns the report that was written when the run ended, if nothing was recorded since: a long
    run takes seconds to read, and its answers need not wait for that."""
    path = run.report("json")
    try:
        written_ns = path.stat().st_mtime_ns
        if any(file.stat().st_mtime_ns > written_ns for file in run.events.iterdir()):
            return None
        return Report.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):  # there is none, or another version wrote it
        return None


def _identity(run: RunDir) -> object:
    """Another one where another run has taken the place of this."""
    state = run.root.stat()
    # A new folder often has the inode of one that was just removed; runs of old have no id.
    written = run.id if run.id.exists() else run.config
    return state.st_dev, state.st_ino, written.stat().st_mtime_ns
