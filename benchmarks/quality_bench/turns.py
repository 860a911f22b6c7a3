"""Lets candidates run in turns, one at a time, so that a busy machine falls on all alike.

A candidate is a process with its children. It is stopped as a whole while the others have their
turns, and its clock stands still: `TurnClock` maps instants of the machine's monotonic clock, which
is what candidates record, to the seconds for which one has had its turn.
"""

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from train_bench.measurement import Usage
from train_bench.watch import ProcessTree

SAMPLE_EVERY_S = 1.0


class Turn(NamedTuple):
    """On the machine's monotonic clock."""

    begin: float
    end: float


class TurnClock:
    """Pure: turns come in, in order; instants are mapped to seconds."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        lengths = [turn.end - turn.begin for turn in turns]
        ends_s = np.cumsum(lengths)
        self.total_s = float(ends_s[-1]) if turns else 0.0
        self._instants = np.array(turns).ravel()
        self._seconds = np.stack([ends_s - lengths, ends_s], axis=-1).ravel()

    def seconds(self, instants: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Returns the turn seconds before each instant; between two turns they stand still."""
        if not len(self._instants):
            return np.zeros_like(instants, dtype=np.float64)
        return np.interp(instants, self._instants, self._seconds)


class Candidate:
    """A command that trains, started at its first turn."""

    def __init__(
        self, name: str, command: Sequence[str], output: Path, extra: Mapping[str, str]
    ) -> None:
        self.name, self.output = name, output
        self.turns: list[Turn] = []
        self.usage: list[Usage] = []
        self.was_cut_off = False
        """True if `end` has ended it before it was done."""
        self._command, self._extra = command, extra
        self._process: subprocess.Popen[bytes] | None = None
        self._tree: ProcessTree | None = None

    @property
    def exit_code(self) -> int | None:
        """None: it has not ended."""
        return self._process.poll() if self._process else None

    def take_turn(self, seconds: float) -> None:
        """Runs for so long, or until it ends; then it is stopped."""
        begin = time.monotonic()
        process, tree = self._go_on()
        try:
            while (left := begin + seconds - time.monotonic()) > 0 and self.exit_code is None:
                self.usage.append(tree.sample())
                with suppress(subprocess.TimeoutExpired):
                    process.wait(min(SAMPLE_EVERY_S, left))
            if self.exit_code is None:
                tree.stop()
        finally:  # also when the benchmark itself is ended
            self.turns.append(Turn(begin, time.monotonic()))
            self.usage.append(tree.sample())

    def ask_to_end(self) -> None:
        """Sends SIGTERM, which it notices in its next turn."""
        if self._process:
            self._process.terminate()

    def end(self) -> None:
        """Ends it at once, whether it runs, is stopped, or has ended."""
        if self._process and self._tree:
            if self.exit_code is None:
                self.was_cut_off = True
                self._tree.sample()  # finds children that are new
            self._tree.end()
            self._process.wait()

    def _go_on(self) -> tuple[subprocess.Popen[bytes], ProcessTree]:
        if self._process and self._tree:
            self.usage.append(self._tree.sample())
            self._tree.go_on()
            return self._process, self._tree
        with self.output.open("wb") as file:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self._extra},
                start_new_session=True,  # Ctrl-C reaches the benchmark alone, which ends this one
            )
        self._tree = ProcessTree(self._process.pid)
        return self._process, self._tree


def take_turns(
    candidates: Sequence[Candidate], turn_s: float, after_turn: Callable[[Candidate], None]
) -> None:
    """Runs all to their ends. `after_turn` is called while none of them runs.

    The last one left is stopped between its turns too: what happens meanwhile is not its time.
    """
    left = list(candidates)
    try:
        while left:
            for candidate in left:
                candidate.take_turn(turn_s)
                after_turn(candidate)
            left = [candidate for candidate in left if candidate.exit_code is None]
    finally:
        for candidate in candidates:
            candidate.end()
