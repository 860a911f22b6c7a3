"""When attempts began and fell silent, and how they ended. Pure.

Durations are those of the monotonic clock, so that a wall clock that is set changes nothing; the
wall clock says only when something was, to be compared with the present.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from dragoman.telemetry.events import AttemptEnded, ClockOffset
from dragoman.telemetry.read.tables import Array, RunTables, Table, slices_by_file

# A run that says nothing for this long, and for much longer than it ever did, is taken for dead.
SILENCE_S = 120.0
SILENCE_OVER_LONGEST_GAP = 3.0

AttemptState = Literal["training", "preempted", "failed", "finished", "broken off"]


class End(NamedTuple):
    at: float
    rank: int
    event: AttemptEnded


class Lifetime(NamedTuple):
    """Of the lowest rank with events, but for the last sign, which any rank may have given."""

    started_at: float
    last_event_at: float
    wall_s: float
    longest_gap_s: float
    ranks: list[int]
    """That have left any event."""


def lifetimes_of(tables: RunTables) -> dict[int, Lifetime]:
    """By attempt."""
    times: dict[int, dict[int, list[Array]]] = defaultdict(lambda: defaultdict(list))
    for table in tables.by_kind.values():
        for (attempt, rank), rows in slices_by_file(table).items():
            both = np.stack([table["monotonic_at"][rows], table["wall_at"][rows]])
            times[attempt][rank].append(both)
    ahead_s = _wall_clocks_ahead(tables[ClockOffset])
    return {
        attempt: _lifetime(
            {rank: np.concatenate(pieces, axis=1) for rank, pieces in by_rank.items()},
            {rank: ahead_s.get((attempt, rank), 0.0) for rank in by_rank},
        )
        for attempt, by_rank in times.items()
    }


def _lifetime(times: dict[int, Array], ahead_s: dict[int, float]) -> Lifetime:
    """`times`: by rank, the monotonic and the wall clock of all its events, in any order."""
    monotonic_at, wall_at = times[min(times)]
    last_signs = [
        float(wall[np.argmax(monotonic)]) - ahead_s[rank]
        for rank, (monotonic, wall) in times.items()
    ]
    return Lifetime(
        started_at=float(wall_at[np.argmin(monotonic_at)]),
        last_event_at=max(last_signs),
        wall_s=float(monotonic_at.max() - monotonic_at.min()),
        longest_gap_s=float(np.diff(np.sort(monotonic_at)).max(initial=0.0)),
        ranks=sorted(times),
    )


def _wall_clocks_ahead(compared: Table) -> dict[tuple[int, int], float]:
    """Attempt and rank -> how far its wall clock was ahead of rank 0's when last compared."""
    return {
        file: float(compared["offset_s"][rows.stop - 1])
        for file, rows in slices_by_file(compared).items()
    }


def silence_s(last: Lifetime, heartbeat_at: float | None, read_at: float) -> float:
    """Since the last sign of life; status.json may be newer than events that are not flushed."""
    last_sign_at = max(last.last_event_at, heartbeat_at or 0.0)
    return max(0.0, read_at - last_sign_at)


def ending_of(ends: Sequence[End], lifetime: Lifetime, silent_s: float) -> tuple[AttemptState, str]:
    """What became of an attempt, and why; of one that goes on, nothing."""
    failures = [end for end in ends if end.event.state == "failed"]
    if failures:
        # The first rank to fail has the cause; the others then fail for want of it.
        first = failures[0]
        rank = f"rank {first.rank}: " if len(lifetime.ranks) > 1 else ""
        return "failed", rank + first.event.reason
    if ends:
        event = ends[0].event
        return "finished" if event.state == "finished" else "preempted", event.reason
    if silent_s > max(SILENCE_S, SILENCE_OVER_LONGEST_GAP * lifetime.longest_gap_s):
        return "broken off", "it said nothing at its end: killed, out of memory or a power cut"
    return "training", ""
