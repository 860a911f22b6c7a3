"""Saves while training continues: makes a copy in memory, which a thread then writes.

Weights and the optimizer's state do not change between two updates, so even the copy is made during
the next step's forward and backward; training waits for it only right before that step's update.
"""

import dataclasses
import os
import sys
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any

import torch

from dragoman.checkpoints.checkpoint import Checkpoint, Owner
from dragoman.checkpoints.finding import all_checkpoints, is_foreign
from dragoman.checkpoints.names import BEST, LATEST, folder_of, linked_step, point_to
from dragoman.checkpoints.storage import Snapshot, prune, save_snapshot, state_file
from dragoman.checkpoints.tensorfile import TensorImage, Tensors
from dragoman.errors import StorageError

NICENESS = 10
"""Niceness of the writing thread, so that it takes almost nothing of a core that training needs."""
LAST_WAIT_S = 120.0
"""How long to wait for a save in flight when a run fails; a disk may hang forever."""


@dataclass(frozen=True)
class Place:
    """Where a snapshot is written, and what stays there afterwards."""

    root: Path
    keep_last: int
    """How many of the newest are kept, this one included. Those of later steps never are: the run
    has rolled back past them."""
    keep: Collection[int] = ()
    """Further steps that are kept."""
    trusted_step: int | None = None
    """The newest up to this step is kept as well: later ones may turn out to be useless."""
    quiet_step: int | None = None
    """So is the newest up to this one, after which the run may be in trouble already."""
    scored_later: int | None = None
    """This step is kept as well: whether it is the best is not known yet."""
    best_step: int | None = None
    """The step that the link `best` is to point to, if intact; `latest` points to this one."""


@dataclass(frozen=True)
class Saved:
    """How a save went, at one place."""

    step: int
    root: Path
    folder: Path | None
    """None if there is none. With an error: it is intact, and what failed came after it."""
    bytes: int
    write_s: float
    error: Exception | None
    is_news: bool
    """True for the first failure here with this reason since the last success, and for the first
    success after failures: worth logging."""
    copy_s: float = 0.0
    in_flight_s: float = 0.0
    """From the snapshot until it was complete here, or had failed."""
    stall_s: float = 0.0
    """How long training stalled: in `begin` and while waiting for the copy."""


class BackgroundSaver:
    """Makes at most one save at a time; keeps memory for one more copy of the state.

    All but the thread itself belongs to the thread that trains.
    """

    def __init__(self, tokenizer_model: bytes, owner: Owner | None = None) -> None:
        self._tokenizer_model, self._owner = tokenizer_model, owner or {}
        self._model, self._optimizer = TensorImage(), TensorImage()
        self._thread: threading.Thread | None = None
        self._copied = threading.Event()
        self._copied.set()
        self._stall_s = 0.0
        self._finished: SimpleQueue[Saved] = SimpleQueue()  # still without their stall
        self._ended: list[Saved] = []
        self._failing: dict[Path, str] = {}

    def __enter__(self) -> "BackgroundSaver":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.finish(LAST_WAIT_S)

    @property
    def is_busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def begin(
        self,
        step: int,
        model: Tensors,
        optimizer: Tensors,
        state: Mapping[str, Any],
        places: Sequence[Place],
        must: bool = False,
    ) -> bool:
        """Starts to save; returns False if the previous save is unfinished and this one is skipped.

        With `must`, waits for the previous one instead. The tensors must stay as they are until
        `wait_until_copied`.
        """
        if self.is_busy and not must:
            return False
        begun = time.perf_counter()
        self.finish()
        self._collect()
        content = state_file(step, state)
        copies = [(self._model, model), (self._optimizer, optimizer)]
        updated = _updates_done(model)
        self._copied.clear()
        # A daemon: a save that hangs must not keep the process from ending.
        self._thread = threading.Thread(
            target=self._save,
            args=(step, copies, content, places, updated),
            name="checkpoint",
            daemon=True,
        )
        self._thread.start()
        self._stall_s = time.perf_counter() - begun
        return True

    def wait_until_copied(self) -> float:
        """Waits for the copy, before the tensors change; returns the seconds it took."""
        if self._copied.is_set():
            return 0.0
        begun = time.perf_counter()
        self._copied.wait()
        waited_s = time.perf_counter() - begun
        self._stall_s += waited_s
        return waited_s

    def finish(self, timeout_s: float | None = None) -> bool:
        """Waits for the save in flight, if any; returns False if it is still in flight."""
        if self._thread is not None:
            self._thread.join(timeout_s)
        return not self.is_busy

    def results(self) -> list[Saved]:
        """Returns the saves that have ended since the last call."""
        self._collect()
        ended, self._ended = self._ended, []
        return ended

    def _collect(self) -> None:
        with suppress(Empty):
            while True:
                saved = self._finished.get_nowait()
                self._ended.append(dataclasses.replace(saved, stall_s=self._stall_s))

    def _save(
        self,
        step: int,
        tensors: list[tuple[TensorImage, Tensors]],
        state: bytes,
        places: Sequence[Place],
        updated: torch.cuda.Event | None,
    ) -> None:
        begun = time.perf_counter()
        failure = None
        try:
            _copy(tensors, updated)
        except Exception as error:  # a save that fails must not stop training
            failure = error
        finally:
            tensors.clear()  # copies, where the model is sharded, that would take up memory
            self._copied.set()
        copy_s = time.perf_counter() - begun
        _give_way()
        snapshot = Snapshot(
            step, self._model, self._optimizer, state, self._tokenizer_model, self._owner
        )
        for place in places:
            saved = self._write(snapshot, place, failure)
            in_flight_s = time.perf_counter() - begun
            self._finished.put(dataclasses.replace(saved, copy_s=copy_s, in_flight_s=in_flight_s))

    def _write(self, snapshot: Snapshot, place: Place, error: Exception | None) -> Saved:
        """Writes a snapshot at one place; `error` is why it could not be copied, if so."""
        begun = time.perf_counter()
        checkpoint: Checkpoint | None = None
        size = 0
        if error is None:
            try:
                checkpoint, size = save_snapshot(place.root, snapshot)
                point_to(place.root, LATEST, checkpoint.folder.name)
                _point_to_best(place)
                _prune(place, snapshot)
            except Exception as problem:
                error = problem
        reason = _kind_of(error) if error else ""
        is_news = self._failing.get(place.root, "") != reason
        self._failing[place.root] = reason
        return Saved(
            step=snapshot.step,
            root=place.root,
            folder=checkpoint.folder if checkpoint else None,
            bytes=size,
            write_s=time.perf_counter() - begun,
            error=error,
            is_news=is_news,
        )


def _copy(tensors: Sequence[tuple[TensorImage, Tensors]], updated: torch.cuda.Event | None) -> None:
    if updated is None:
        for image, content in tensors:
            image.take(content)
        return
    # Concurrent with the device's work on the next step, and after the last update.
    stream = torch.cuda.Stream(updated.device)  # type: ignore[no-untyped-call]
    with torch.cuda.stream(stream):
        stream.wait_event(updated)
        for image, content in tensors:
            image.take(content)
        stream.synchronize()


def _updates_done(model: Tensors) -> torch.cuda.Event | None:
    """Returns an event in the device's queue after the last update; None on CPU."""
    device = next((tensor.device for tensor in model.values() if tensor.is_cuda), None)
    if device is None:
        return None
    event: torch.cuda.Event = torch.cuda.current_stream(device).record_event()
    return event


def _point_to_best(place: Place) -> None:
    """Points the link `best` to the best step, which may be an earlier one: it was scored after it
    was saved, or the run has rolled back to it. If its save failed, the previous best stays."""
    if place.best_step is None or place.best_step == linked_step(place.root, BEST):
        return
    folder = folder_of(place.best_step)
    if (place.root / folder).is_dir():
        point_to(place.root, BEST, folder)


def _prune(place: Place, newest: Snapshot) -> None:
    earlier = [
        checkpoint.step
        for checkpoint in all_checkpoints(place.root)
        if checkpoint.step <= newest.step and not is_foreign(checkpoint, newest.owner)
    ]
    keep = {*earlier[-place.keep_last :], *(s for s in place.keep if s <= newest.step)}
    if place.scored_later is not None:
        keep.add(place.scored_later)
    if place.keep and (best := linked_step(place.root, BEST)) in earlier:
        keep.add(best)
    if place.quiet_step is not None:
        keep |= {*[s for s in earlier if s <= place.quiet_step][-1:]}
    if place.trusted_step is not None:
        trusted = [s for s in earlier if s <= place.trusted_step]
        # With the oldest of the others, so that one is left that can be trusted later.
        keep |= {*trusted[-1:], *earlier[len(trusted) : len(trusted) + 1]}
    prune(place.root, keep, newest.owner)


def _kind_of(error: Exception) -> str:
    return error.reason if isinstance(error, StorageError) else type(error).__name__


def _give_way() -> None:
    """Lowers this thread's priority for good; on Linux, where threads have their own niceness."""
    if sys.platform == "linux":
        with suppress(OSError):  # its niceness is already higher
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
