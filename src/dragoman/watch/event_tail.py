"""What is added to the event files of a run comes in, as events, without reading what is old.

Of files that were there when watching began, only the beginning, which says who writes it, and the
end are read: that costs the same for a run of an hour and of a month.
"""

import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dragoman.rundir import RunDir
from dragoman.telemetry.events import SensorReading, Stamped, StepDone, from_line, kind_of
from dragoman.telemetry.read.events import event_files

HEAD_BYTES = 16_384
"""Holds what a rank records before its first steps: its start, clocks, device, sensors."""
TAIL_BYTES = 262_144
MOST_TAIL_BYTES = 4_194_304
"""Of all files together, so that opening a run of a hundred ranks takes no longer."""
LEAST_TAIL_BYTES = 32_768
MOST_BYTES_AT_ONCE = 4_194_304
"""Of one file in one call; the rest comes with the next. A file that grows faster than this is not
one of events."""
SETTLED_S = 2.0
"""A folder that was changed no longer than this before it was listed may change again within the
same tick of the file system's clock."""


_AGAIN_AND_AGAIN = (StepDone, SensorReading)


class Added(NamedTuple):
    """What one call has found in one file."""

    attempt: int
    rank: int
    events: list[Stamped]
    is_anew: bool
    """The file was not known, or is not the one that was: events before these do not count."""


@dataclass
class _Place:
    """How far a file has been read."""

    inode: int
    offset: int
    """Of the first byte that has not been read; always behind a whole line."""
    seen_size: int
    """A last line that is not whole is looked at again when the file has grown."""


class EventTail:
    """Yields the events that were added since the call before; not for several threads at once.

    While nothing is added, a call costs one look at the folder and one at each file of the newest
    attempts. Raises OSError only for what cannot be read at all; what vanishes is forgotten.
    """

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._first_attempt: int | None = None
        self._places: dict[tuple[int, int], _Place] = {}
        self._files: list[tuple[int, int, Path]] = []
        self._folder_stamp: tuple[int, int] | None = None
        self._is_settled = False

    def added(self) -> Iterator[Added]:
        files = self._newest_files()
        listed = {(attempt, rank) for attempt, rank, _ in files}
        self._places = {key: place for key, place in self._places.items() if key in listed}
        tail_bytes = min(TAIL_BYTES, max(LEAST_TAIL_BYTES, MOST_TAIL_BYTES // max(1, len(files))))
        for attempt, rank, path in files:
            try:
                found = self._read(attempt, rank, path, tail_bytes)
            except FileNotFoundError:
                self._places.pop((attempt, rank), None)
                self._folder_stamp = None
                continue
            if found and (found.events or found.is_anew):
                yield found

    def _newest_files(self) -> list[tuple[int, int, Path]]:
        """Returns those of the newest attempt and, if it began while it was watched, of the one
        before: its last events may come late, from another host."""
        try:
            state = self._run.events.stat()
        except FileNotFoundError:
            self._folder_stamp, self._files, self._first_attempt = None, [], None
            return []
        stamp = state.st_ino, state.st_mtime_ns
        if stamp != self._folder_stamp or not self._is_settled:
            self._folder_stamp = stamp
            self._is_settled = abs(time.time() - state.st_mtime) > SETTLED_S
            every = event_files(self._run)
            newest = max((attempt for attempt, _, _ in every), default=None)
            if newest is None or self._first_attempt is None or newest < self._first_attempt:
                self._first_attempt = newest
            attempts = {newest}
            if newest is not None and newest > (self._first_attempt or 0):
                earlier = (a for a, _, _ in every if a < newest)
                attempts.add(max(earlier, default=newest))
            self._files = [file for file in every if file[0] in attempts]
        return self._files

    def _read(self, attempt: int, rank: int, path: Path, tail_bytes: int) -> Added | None:
        key = attempt, rank
        state = path.stat()
        place = self._places.get(key)
        is_anew = place is None or place.inode != state.st_ino or state.st_size < place.offset
        if place and not is_anew and state.st_size == place.seen_size:
            return None
        if not stat.S_ISREG(state.st_mode):  # opening a pipe would wait for a writer
            return None
        with path.open("rb") as file:
            state = os.fstat(file.fileno())
            lines: list[bytes] = []
            if place is None or is_anew:
                begin = 0
                if state.st_size > HEAD_BYTES + tail_bytes:
                    head, _ = _whole_lines(file.read(HEAD_BYTES))
                    lines = [line for line in head if kind_of(line) not in _AGAIN_AND_AGAIN]
                    begin = state.st_size - tail_bytes
                    file.seek(begin)
                    begin += len(file.readline(tail_bytes))  # the rest of a line
                place = _Place(state.st_ino, begin, 0)
            file.seek(place.offset)
            read = file.read(MOST_BYTES_AT_ONCE)
            more, length = _whole_lines(read)
            is_endless = not more and len(read) == MOST_BYTES_AT_ONCE
            place.offset += len(read) if is_endless else length
            # Less than the whole file, where there is more than was read at once.
            place.seen_size = file.tell()
        self._places[key] = place
        found = (from_line(line) for line in lines + more if kind_of(line))
        return Added(attempt, rank, [stamped for stamped in found if stamped], is_anew)


def _whole_lines(read: bytes) -> tuple[list[bytes], int]:
    """Returns the lines that have an end, and how many bytes they are."""
    length = read.rfind(b"\n") + 1
    return read[:length].split(b"\n")[:-1], length
