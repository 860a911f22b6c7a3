"""Keeps a run's copy in an object store up to date, beside training, in a thread of its own.

Nothing that happens here reaches training but news of it. Without torch.
"""

import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType

from dragoman.checkpoints.checkpoint import Checkpoint
from dragoman.checkpoints.finding import all_checkpoints
from dragoman.checkpoints.mirror import (
    RUN_ID,
    mirrored_checkpoints,
    mirrored_id,
    prune_mirror,
    read_attempt,
    records_of,
    refuse_another_run,
    upload_checkpoint,
    write_attempt,
    write_best,
)
from dragoman.checkpoints.names import BEST, linked_step
from dragoman.errors import CorruptFileError, DragomanError, RemoteError, UserError
from dragoman.rundir import RunDir
from dragoman.storage import Address, Pace, Patience, Store

logger = logging.getLogger(__name__)

NICENESS = 10
RECORDS_EVERY_S = 60.0
RECORD_BYTES_PER_S = 100_000
"""A record that has grown large is uploaded less often: no faster than this on average."""
AGAIN_AFTER_S = 30.0
"""After a failure, unless something new is saved before."""
LAST_AGAIN_AFTER_S = 2.0
"""After a failure when the attempt has ended."""
LAST_TRIES = 3
LOOK_EVERY_S = 0.2
"""For a request to stop, while waiting for the last upload."""
FAILED_WAIT_S = 30.0
"""How long to wait at the end of an attempt that has failed."""


@dataclass(frozen=True)
class MirrorSettings:
    address: Address
    run_id: str
    part: str
    """Where checkpoints go; empty: this host has none that others do not have."""
    keep_last: int
    bytes_per_s: float
    """0: no limit."""
    wait_s: float
    """At the end of an attempt."""
    has_all_records: bool
    """Also config, status, manifest and id, which one host alone uploads."""
    attempt: str = ""
    """A token, the same on all hosts and another for each attempt, wherever it is made."""
    was_read: bool = True
    """Whether what is there was known when the attempt began. If not, and it is newer than what is
    here, nothing is uploaded and nothing is removed there."""
    patience: Patience = field(default_factory=Patience)


@dataclass(frozen=True)
class MirrorNews:
    """That the mirror began to fail, fails for another reason, or works again."""

    step: int
    """Of the newest checkpoint here; 0: there is none."""
    message: str
    is_failure: bool


class Mirror:
    """Uploads checkpoints and records while open, and what is left when it is closed."""

    def __init__(self, settings: MirrorSettings, run: RunDir) -> None:
        self._settings, self._run = settings, run
        self._pace = Pace(settings.bytes_per_s)
        self._wake, self._ending = threading.Event(), threading.Event()
        self._news: SimpleQueue[MirrorNews] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._store: Store | None = None
        self._uploaded: dict[int, str] | None = None
        """Step -> hash of its manifest, of the checkpoints there; None: not looked yet."""
        self._best: int | None = None
        self._stamps: dict[str, tuple[int, int]] = {}
        self._sent_at: dict[str, float] = {}
        self._failing: set[str] = set()
        """Why uploads have failed since the last that worked."""
        self._was_read = settings.was_read
        self._is_own = False
        """Whether this attempt's uploads have been the ones that count."""
        self._is_done = False
        self.signals: Callable[[], int] = lambda: 0
        """How many requests to stop have come; one more ends the wait for the last upload."""

    def __enter__(self) -> "Mirror":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.finish(self._settings.wait_s if kind is None else FAILED_WAIT_S)

    def begin(self) -> None:
        # A daemon: a server that hangs must not keep the process from ending.
        self._thread = threading.Thread(target=self._work, name="mirror", daemon=True)
        self._thread.start()

    def look(self) -> None:
        """Says that there may be a new checkpoint here."""
        self._wake.set()

    def news(self) -> list[MirrorNews]:
        """Returns what has happened since the last call."""
        found = []
        with suppress(Empty):
            while True:
                found.append(self._news.get_nowait())
        return found

    def finish(self, wait_s: float) -> bool:
        """Uploads what is left; returns False, and logs it, if that is not done by then."""
        if self._thread is None:
            return True
        self._ending.set()
        self._wake.set()
        self._thread.join(1.0)
        if self._thread.is_alive():
            logger.info(
                f"{self._settings.address}: waiting for the last upload, {wait_s:,.0f} s at most; "
                "interrupt to leave it out"
            )
            before, ends_at = self.signals(), time.monotonic() + wait_s - 1.0
            while self._thread.is_alive() and self.signals() == before:
                left_s = ends_at - time.monotonic()
                if left_s <= 0:
                    break
                self._thread.join(min(LOOK_EVERY_S, left_s))
        for news in self.news():
            (logger.warning if news.is_failure else logger.info)(news.message)
        if not self._is_done:
            logger.warning(
                f"{self._settings.address}: does not hold the last state of the run; "
                "what is here does, and the same command uploads it"
            )
        self._thread = None
        return self._is_done

    def _work(self) -> None:
        _give_way()
        last_tries = 0
        while True:
            is_last = self._ending.is_set()
            last_tries += is_last
            self._wake.clear()
            try:
                self._upload(is_last)
            except Exception as error:  # nothing here may stop training
                self._failed(error)
                if is_last and (last_tries == LAST_TRIES or not _may_pass(error)):
                    return
                pause_s = LAST_AGAIN_AFTER_S if is_last else AGAIN_AFTER_S
            else:
                self._works()
                if is_last:
                    self._is_done = True
                    return
                pause_s = RECORDS_EVERY_S
            if is_last:
                time.sleep(pause_s)
            else:
                self._wake.wait(pause_s)

    def _upload(self, is_last: bool) -> None:
        store = self._opened()
        if self._settings.part:
            self._upload_checkpoints(store)
        self._upload_records(store, is_last)

    def _opened(self) -> Store:
        """Returns the store, after a look at whose mirror it is; a new one becomes this run's."""
        if self._store is None:
            store = Store(self._settings.address, self._settings.patience)
            refuse_another_run(store, mirrored_id(store), self._settings.run_id)
            if self._settings.has_all_records:
                store.upload(RUN_ID, f"{self._settings.run_id}\n".encode())
                write_attempt(store, self._settings.attempt)
            self._store = store
        self._refuse_later_attempt(self._store)
        return self._store

    def _refuse_later_attempt(self, store: Store) -> None:
        """Raises UserError where an attempt that began later, elsewhere, uploads to the mirror.

        Of two machines that train one run, or of two runs that began at the same time, only one
        must upload and remove. The attempt's first host notes the token; others may look before.
        """
        is_own = read_attempt(store) == self._settings.attempt
        if not is_own and (self._is_own or self._settings.has_all_records):
            raise UserError(
                f"{store.address}: another machine has begun to train this run or one of this "
                "name, and from here nothing more is uploaded; stop one of the two"
            )
        self._is_own = self._is_own or is_own

    def _upload_checkpoints(self, store: Store) -> None:
        part = self._settings.part
        if self._uploaded is None:
            uploaded = {each.step: each.sha256 for each in mirrored_checkpoints(store, part)}
            self._refuse_later_steps(store, max(uploaded, default=0))
            self._uploaded = uploaded
        has_uploaded = False
        while missing := self._missing():
            newest, sha256 = missing[-1]
            begun = time.monotonic()
            try:
                there = upload_checkpoint(store, part, newest.folder, self._pace)
            except FileNotFoundError:  # it was removed or replaced before it could be opened
                self._uploaded[newest.step] = ""
                continue
            except CorruptFileError as error:  # no reason to leave out the others
                logger.warning(f"{error}; it is not uploaded to {store.address}")
                self._uploaded[newest.step] = sha256
                continue
            # Of what was uploaded: a rollback may have replaced the one that is here since then.
            self._uploaded[newest.step] = there.sha256
            has_uploaded = True
            logger.debug(
                f"{store.address}: step {newest.step:,} is there, {there.bytes / 1e6:,.1f} MB in "
                f"{time.monotonic() - begun:,.1f} s"
            )
            self._refuse_later_attempt(store)
        if part == "checkpoints":
            best = linked_step(self._run.checkpoints, BEST)
            if best is not None and best != self._best and best in self._uploaded:
                write_best(store, best)
                self._best = best
        if has_uploaded:
            kept = [checkpoint.step for checkpoint in all_checkpoints(self._run.checkpoints)]
            for step in prune_mirror(store, part, kept, self._settings.keep_last):
                self._uploaded.pop(step, None)

    def _refuse_later_steps(self, store: Store, newest_there: int) -> None:
        """Raises UserError where the mirror turns out to be newer than what this attempt went on
        from: its checkpoints would be taken for steps that the run has rolled back past."""
        steps = [checkpoint.step for checkpoint in all_checkpoints(self._run.checkpoints)]
        newest_here = max(steps, default=0)
        if not self._was_read and newest_there > newest_here:
            raise UserError(
                f"{store.address}: could not be read when this attempt began, and holds step "
                f"{newest_there:,}, which is later than any here ({newest_here:,}); stop and start "
                "the run again to go on from there"
            )
        self._was_read = True

    def _missing(self) -> list[tuple[Checkpoint, str]]:
        """Returns the checkpoints here that are not there, or not as they are here, with the hash
        of their manifest."""
        assert self._uploaded is not None
        found = []
        for checkpoint in all_checkpoints(self._run.checkpoints):
            with suppress(OSError):  # it is being removed
                sha256 = checkpoint.manifest_sha256()
                if sha256 and self._uploaded.get(checkpoint.step) != sha256:
                    found.append((checkpoint, sha256))
        return found

    def _upload_records(self, store: Store, is_last: bool) -> None:
        for path in records_of(self._run):
            name = path.relative_to(self._run.root).as_posix()
            if "/" not in name and not self._settings.has_all_records:
                continue
            with suppress(FileNotFoundError):
                self._upload_record(store, name, path, is_last)

    def _upload_record(self, store: Store, name: str, path: Path, is_last: bool) -> None:
        status = path.stat()
        stamp = (status.st_mtime_ns, status.st_size)
        waits_s = max(RECORDS_EVERY_S, status.st_size / RECORD_BYTES_PER_S)
        is_early = time.monotonic() < self._sent_at.get(name, -waits_s) + waits_s
        if self._stamps.get(name) == stamp or (is_early and not is_last and name in self._stamps):
            return
        with path.open("rb") as file:
            store.upload(name, file, self._pace)
        self._stamps[name], self._sent_at[name] = stamp, time.monotonic()

    def _failed(self, error: Exception) -> None:
        self._uploaded = None  # what is there is looked at again
        reason = _reason_of(error)
        if reason in self._failing:
            return
        self._failing.add(reason)
        what = str(error) if isinstance(error, DragomanError) else _described(error)
        self._tell(f"{what}; training goes on, and the mirror is tried again", is_failure=True)

    def _works(self) -> None:
        if self._failing:
            self._failing.clear()
            self._tell(
                f"{self._settings.address}: works again, and holds all that is kept here",
                is_failure=False,
            )

    def _tell(self, message: str, is_failure: bool) -> None:
        steps = [checkpoint.step for checkpoint in all_checkpoints(self._run.checkpoints)]
        self._news.put(MirrorNews(max(steps, default=0), message, is_failure))


def _reason_of(error: Exception) -> str:
    if isinstance(error, RemoteError):
        return error.kind
    return str(error) if isinstance(error, UserError) else type(error).__name__


def _may_pass(error: Exception) -> bool:
    return isinstance(error, RemoteError) and error.kind in ("broken", "unreachable")


def _described(error: Exception) -> str:
    return f"the mirror fails ({type(error).__name__}: {error})"


def _give_way() -> None:
    """Lowers this thread's priority for good; on Linux, where threads have their own niceness."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
