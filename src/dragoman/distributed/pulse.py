"""Each rank's heartbeat, outside the collectives, and the naming of a rank that falls silent.

A rank writes twice a second into the store where the ranks have met: a count, the phase of its
work, since when, and where its main thread stands. Every rank reads the others'. When one falls
silent or stays in a phase far longer than it should, the lowest rank that is alive reports which,
on which host, in which phase, with its stack, and where the others wait; then all end. A rank that
is stopped, killed or unplugged cannot report itself, and ranks that wait in a collective for it
cannot either: their main threads are inside the library that waits. Where an agent of ours has
started the ranks, it sees a rank die and records it in the dead rank's place, so that nobody has to
wait for silence.

Heartbeats are signed. One that is not, or cannot be read, counts as not heard; one warning says so.
"""

import logging
import os
import statistics
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import PurePath
from types import FrameType
from typing import Any, NamedTuple, Protocol

from dragoman.console import write_last_error
from dragoman.distributed.seal import Seal
from dragoman.errors import FailedElsewhereError, LostPeerError, NamedRank

logger = logging.getLogger(__name__)

BEAT_S = 0.5
LAST_WAIT_S = 30.0
"""At the end of a run that went well, for a message in flight."""
SILENT_S = 8.0
"""A rank that beats twice a second and is not heard for so long is stopped, dead or cut off."""
DEAD_S = 3.0
"""The same when a connection to some rank has broken, so that one of them is known to be gone."""
NAMING_S = 12.0
"""How long a rank looks for the one that is gone before it reports only that one is."""
WITNESS_S = 1.0
"""How long an agent may take to record how a rank has died, which says more than its silence."""
REPORTING_S = 3.0
"""What the reporting rank gets before the others end, since their end may end it too."""
ONE_HOST_SILENT_S = 60.0
"""The same as SILENT_S for ranks of one machine under an agent of ours, which sees it when one of
them dies: silence only means that the machine is busy."""
STEPS_WITHOUT_STORE = 3
"""A rank that cannot reach the store goes on for so many steps: the launcher that kept the store
may be gone, and the ranks have been asked to finish their step and save."""

LEAST_PATIENCE_S = 60.0
STEPS_OF_PATIENCE = 20
LONG_PATIENCE_S = 1800.0
"""For phases whose length nobody knows before: the start, evaluations, checkpoints."""

IN_A_STEP = ("data", "forward", "backward", "optimizer", "agreement")


_ADVICE = "the same command resumes from the newest checkpoint"


class Store(Protocol):
    """The little of torch's stores that a pulse needs."""

    def set(self, key: str, value: str) -> object: ...
    def multi_get(self, keys: list[str]) -> list[bytes]: ...


@dataclass(frozen=True)
class Beat:
    """The state of one rank, as it writes it into the store."""

    rank: int
    host: str
    count: int = 0
    phase: str = "start"
    step: int = 0
    in_phase_s: float = 0.0
    stack: tuple[str, ...] = ()
    ended: str | None = None
    """Why it has ended, empty for a good end; None: it has not."""
    exit_code: int = 0
    died: str = ""
    """How its process was ended from outside, recorded by its agent."""

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "Beat":
        return cls(**content | {"stack": tuple(content["stack"])})

    @property
    def is_alive(self) -> bool:
        return self.ended is None and not self.died

    @property
    def name(self) -> NamedRank:
        return NamedRank(self.rank, self.host)

    @property
    def where(self) -> str:
        return f"{self.phase} of step {self.step:,}" if self.phase in IN_A_STEP else self.phase


@dataclass(frozen=True)
class View:
    """A beat as another rank sees it, and how long ago its count last changed."""

    beat: Beat
    age_s: float


def find_silent(views: Sequence[View], limit_s: float) -> View | None:
    """Returns the rank that has been silent for longest, where that is longer than `limit_s`."""
    quiet = [view for view in views if view.beat.is_alive and view.age_s > limit_s]
    return max(quiet, key=lambda view: view.age_s, default=None)


def find_dead(views: Sequence[View]) -> View | None:
    """Returns the lowest rank whose agent has recorded its death."""
    return next((view for view in views if view.beat.died), None)


def find_stuck(views: Sequence[View], patience_s: float) -> View | None:
    """Returns the rank that is furthest behind, where all have been in a phase for too long."""
    live = [view for view in views if view.beat.is_alive]
    if not live or any(view.beat.in_phase_s <= _patience(view.beat, patience_s) for view in live):
        return None
    return min(live, key=lambda view: _progress(view.beat))


def lost_rank(culprit: View, views: Sequence[View], what: str) -> LostPeerError:
    """Returns an error with a sentence about the culprit, its stack and where the others are."""
    lines = [f"{culprit.beat.name} {what}"]
    if culprit.beat.stack:
        lines += ["  it stood at", *(f"    {frame}" for frame in culprit.beat.stack)]
    others = [
        f"{view.beat.name} in {view.beat.where} for {view.beat.in_phase_s:.0f} s"
        for view in views
        if view.beat.rank != culprit.beat.rank and view.beat.is_alive
    ]
    if others:
        lines.append(f"  meanwhile: {'; '.join(others)}")
    lines.append(f"  {_ADVICE}")
    return LostPeerError("\n".join(lines), culprit=culprit.beat.name)


def silence(view: View) -> str:
    return (
        f"has not been heard from for {view.age_s:.0f} s: it was in {view.beat.where} then, and "
        "has been stopped, killed or cut off since"
    )


def death(view: View) -> str:
    return f"{view.beat.died}: it was in {view.beat.where} then"


def reporting_rank(views: Sequence[View], limit_s: float) -> int:
    """Returns the lowest rank that is alive: one report is enough."""
    return min(v.beat.rank for v in views if v.beat.is_alive and v.age_s <= limit_s)


def record_death(store: Store, seal: Seal, rank: int, what: str) -> None:
    """Puts `what` into the last heartbeat of a rank that has died, for the other ranks to find.

    A rank that died before its first heartbeat has none; the others do not know it yet.
    """
    key = _key(rank)
    (sealed,) = store.multi_get([key])
    if (content := seal.unseal(key, sealed)) is not None:
        beat = Beat.from_json(content)
        last = replace(beat, count=beat.count + 1, died=what)
        store.set(key, seal.seal(key, asdict(last)))


class _Problem(NamedTuple):
    error: LostPeerError
    reported_here: bool


class Pulse:
    """This rank's heartbeat and its watch over the others. Alone, it only remembers the phase."""

    def __init__(
        self,
        rank: int,
        ranks: int,
        host: str,
        store: Store | None = None,
        seal: Seal | None = None,
        set_timeout: Callable[[float], None] = lambda seconds: None,
        silent_s: float = SILENT_S,
    ) -> None:
        self.on_loss: Callable[[LostPeerError], None] = lambda error: None
        """Called before the process ends because a rank is lost, on the rank that reports it."""
        self._rank, self._ranks, self._store, self._set_timeout = rank, ranks, store, set_timeout
        self._seal = seal or Seal("")
        self._silent_s = silent_s
        self.least_patience_s = LEAST_PATIENCE_S
        """Is raised where a step may wait for something from outside, such as data."""
        self._beat = Beat(rank, host)  # changed by the main thread alone, so that none is lost
        self._count = 0
        self._phase_at = self._step_at = self._exchanged_at = time.monotonic()
        self._step_times: deque[float] = deque(maxlen=100)
        self._timeout_s = 0.0
        self._seen: dict[int, tuple[Beat, float]] = {}
        self._has_warned_of_forgery = False
        self._closed = threading.Event()
        self._naming = False
        self._main = threading.get_ident()
        self._threads: list[threading.Thread] = []
        if store is not None:
            self._write()

    @property
    def host(self) -> str:
        return self._beat.host

    @property
    def phase(self) -> str:
        return self._beat.phase

    @property
    def steps_done(self) -> int:
        """The last step that is done; the one that is being taken does not count."""
        return self._beat.step - (self._beat.phase in IN_A_STEP)

    def begin(self) -> None:
        """Starts to beat and to watch, once every rank has made its pulse."""
        if self._store is None:
            return
        for work in (self._exchange, self._watch):
            thread = threading.Thread(target=work, name=work.__name__, daemon=True)
            thread.start()
            self._threads.append(thread)

    def enter(self, phase: str, step: int | None = None) -> None:
        """Notes which phase this rank begins, of the same step unless given; costs nothing."""
        now = time.monotonic()
        before = self._beat
        step = before.step if step is None else step
        if phase == "data":
            if before.phase in IN_A_STEP and before.step:
                self._step_times.append(now - self._step_at)
            self._step_at = now
        self._beat = replace(before, phase=phase, step=step)
        self._phase_at = now
        self._adjust_timeout(_patience(self._beat, self.patience_s))

    @property
    def patience_s(self) -> float:
        """How long a phase of a step may take before something must be wrong."""
        if not self._step_times:
            return LONG_PATIENCE_S
        slow = max(self._step_times[-1], statistics.median(self._step_times))
        return max(self.least_patience_s, STEPS_OF_PATIENCE * slow)

    def find_lost_rank(self) -> LostPeerError | FailedElsewhereError:
        """Returns why a connection broke: a rank is gone, or has failed and reports it itself."""
        if self._store is None:
            return LostPeerError(f"another rank is gone\n  {_ADVICE}")
        self._naming = True
        begun = time.monotonic()
        while time.monotonic() - begun < NAMING_S:
            views = self.views()
            if gone := next((view.beat for view in views if view.beat.ended), None):
                return FailedElsewhereError(gone.exit_code)
            if dead := find_dead(views):
                if reporting_rank(views, self._silent_s) != self._rank:
                    return FailedElsewhereError(LostPeerError.exit_code)
                return lost_rank(dead, views, death(dead))
            culprit = find_silent(views, DEAD_S)
            if culprit and time.monotonic() - begun > WITNESS_S:
                if reporting_rank(views, DEAD_S) != self._rank:
                    return FailedElsewhereError(LostPeerError.exit_code)
                return lost_rank(culprit, views, silence(culprit))
            time.sleep(BEAT_S / 2)
        return LostPeerError(f"another rank is gone, though all are still heard\n  {_ADVICE}")

    def views(self) -> list[View]:
        now = time.monotonic()
        own = View(self._current(), 0.0)
        others = [View(beat, now - seen_at) for beat, seen_at in list(self._seen.values())]
        return sorted([own, *others], key=lambda view: view.beat.rank)

    def close(self, ended: str = "", exit_code: int = 0) -> None:
        """Lets the others know that this rank has ended, and why."""
        self._closed.set()
        # A thread that is inside the store when Python ends takes the process down with it. Where
        # something has failed already, that is no reason to wait for a host that is gone.
        patience_s = 2 * BEAT_S if ended else LAST_WAIT_S
        for thread in self._threads:
            thread.join(timeout=patience_s)
        if self._store is not None:
            self._beat = replace(self._beat, ended=ended, exit_code=exit_code)
            try:
                self._write()
            except RuntimeError:
                return  # whoever kept the store is gone, and with it whoever could have read this

    def _exchange(self) -> None:
        assert self._store is not None
        others = [rank for rank in range(self._ranks) if rank != self._rank]
        while not self._closed.wait(BEAT_S):
            try:
                self._write()
                answers = self._store.multi_get([_key(rank) for rank in others])
            except RuntimeError:
                continue  # the watch sees how long ago the last exchange was
            self._exchanged_at = time.monotonic()
            for rank, answer in zip(others, answers, strict=True):
                self._hear(rank, answer)

    def _hear(self, rank: int, answer: bytes) -> None:
        content = self._seal.unseal(_key(rank), answer)
        if content is None:
            if not self._has_warned_of_forgery:
                self._has_warned_of_forgery = True
                logger.warning(
                    f"the store held a heartbeat of rank {rank} that was not signed with the "
                    "secret of this start, and it is ignored; somebody else can reach the store "
                    "(docs/security.md)"
                )
            return
        beat = Beat.from_json(content)
        # A count never falls, so an old heartbeat that is put back says nothing.
        if rank not in self._seen or self._seen[rank][0].count < beat.count:
            self._seen[rank] = (beat, time.monotonic())

    def _write(self) -> None:
        assert self._store is not None
        self._count += 1
        key = _key(self._rank)
        self._store.set(key, self._seal.seal(key, asdict(self._current())))

    def _current(self) -> Beat:
        since = time.monotonic() - self._phase_at
        frame = sys._current_frames().get(self._main)
        return replace(self._beat, count=self._count, in_phase_s=since, stack=_stack(frame))

    def _watch(self) -> None:
        while not self._closed.wait(BEAT_S):
            if not self._naming and (problem := self._find_problem()):
                self._end(problem)

    def _find_problem(self) -> _Problem | None:
        views = self.views()
        without_store_s = time.monotonic() - self._exchanged_at
        # Whoever evaluates or saves needs no other rank, and is not to be disturbed.
        if without_store_s > self._patience_with_store_s and self._beat.phase in IN_A_STEP:
            error = LostPeerError(
                f"{self._beat.name} has not reached the store where the ranks meet for "
                f"{without_store_s:.0f} s: whoever keeps it is down, or the network to it is\n"
                f"  {_ADVICE}",
                culprit=self._beat.name,
            )
            return _Problem(error, reported_here=True)
        if dead := find_dead(views):
            error = lost_rank(dead, views, death(dead))
        elif without_store_s > SILENT_S:
            return None  # others may have been heard by everybody else
        elif culprit := find_silent(views, self._silent_s):
            error = lost_rank(culprit, views, silence(culprit))
        elif culprit := find_stuck(views, self.patience_s):
            error = lost_rank(
                culprit,
                views,
                f"has been in {culprit.beat.where} for {culprit.beat.in_phase_s:.0f} s, and no "
                "rank has gone on since",
            )
        else:
            return None
        return _Problem(error, reporting_rank(views, self._silent_s) == self._rank)

    @property
    def _patience_with_store_s(self) -> float:
        steps = statistics.median(self._step_times) if self._step_times else 0.0
        return max(self._silent_s, STEPS_WITHOUT_STORE * steps)

    def _end(self, problem: _Problem) -> None:
        if problem.reported_here:
            write_last_error(str(problem.error))
            self.on_loss(problem.error)
        else:
            time.sleep(REPORTING_S)
        os._exit(1)  # the main thread is inside a library that waits, and would not come back

    def _adjust_timeout(self, seconds: float) -> None:
        # A little more than our own patience: whoever can name the culprit should be first.
        wanted = seconds + 2 * SILENT_S
        if not 0.5 < self._timeout_s / wanted <= 1.0:
            self._timeout_s = wanted
            self._set_timeout(wanted)


def _key(rank: int) -> str:
    return f"pulse/{rank}"


def _patience(beat: Beat, of_steps_s: float) -> float:
    return of_steps_s if beat.phase in IN_A_STEP else LONG_PATIENCE_S


def _progress(beat: Beat) -> tuple[int, int]:
    within = IN_A_STEP.index(beat.phase) if beat.phase in IN_A_STEP else len(IN_A_STEP)
    return beat.step, within


def _stack(frame: FrameType | None) -> tuple[str, ...]:
    """Returns the innermost frames of a thread, innermost first."""
    places: list[str] = []
    while frame and len(places) < 8:
        code = frame.f_code
        short = "/".join(PurePath(code.co_filename).parts[-2:])
        places.append(f"{short}:{frame.f_lineno} {code.co_name}")
        frame = frame.f_back
    return tuple(places)
