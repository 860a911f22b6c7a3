"""Offsets between the clocks of hosts, and one timeline for the events of all of them.

Two clocks are compared by a message there and back: it was heard after it was sent, and the answer
was received after it was given. Each round trip thus puts the offset between two bounds;
several leave the narrowest. Hosts compare their monotonic clocks, which nobody sets, at the start
and during the run, since they also drift: a few milliseconds in a minute.

The timeline of a run is rank 0's wall clock as it stood when the attempt began, carried on by its
monotonic clock. So a clock that is set during the run moves no event.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dragoman.telemetry.events import ClockOffset

ROUNDS = 8
WORST_ERROR = 3.0
"""Times the median error; what was measured worse, in a moment of crowding say, is not used."""

Floats = npt.NDArray[np.float64]


class RoundTrip(NamedTuple):
    """A message and its answer, each moment on the clock of the side where it happened."""

    sent_at: float
    """On the asker's clock, like `received_at`."""
    heard_at: float
    """On the other's clock, like `answered_at`."""
    answered_at: float
    received_at: float


class Offset(NamedTuple):
    """The asker's clock minus the other's."""

    offset_s: float
    error_s: float


def estimate(trips: Sequence[RoundTrip]) -> Offset:
    """Returns the middle of what all round trips allow. The bounds may come from different ones:
    what delays a message there does not weaken the bound of the way back."""
    least = max(trip.sent_at - trip.heard_at for trip in trips)
    most = min(trip.received_at - trip.answered_at for trip in trips)
    # Bounds that cross, by a hair, mean that the clocks drifted between two round trips.
    return Offset((least + most) / 2, abs(most - least) / 2)


def compare_clocks(
    meet: Callable[[], object],
    gather: Callable[[Any], list[Any]],
    rank: int,
    host: str,
    monotonic: Callable[[], float] = time.monotonic,
    wall: Callable[[], float] = time.time,
) -> ClockOffset:
    """Compares this host's clocks with rank 0's, for an event. Collective: every rank must call.

    `meet` is any small collective that no rank leaves before all have entered: `group.sums([0.0])`,
    or in a store, to set a key of one's own and wait for everyone's. `gather` is `group.gather`. A
    meeting is a round trip: rank 0 heard of this rank when it left, and answered when it entered.
    The first one only lets all ranks arrive.
    """
    meet()
    passed: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        entered_at = monotonic()
        meet()
        passed.append((entered_at, monotonic()))
    wall_ahead_s = wall() - monotonic()
    theirs, their_wall_ahead_s = gather([passed, wall_ahead_s])[0]
    if rank == 0:
        return ClockOffset(host, 0.0, 0.0, 0.0)
    between = estimate(
        [
            RoundTrip(entered_at, their_left_at, their_entered_at, left_at)
            for (entered_at, left_at), (their_entered_at, their_left_at) in zip(
                passed, theirs, strict=True
            )
        ]
    )
    return ClockOffset(
        host=host,
        offset_s=between.offset_s + wall_ahead_s - their_wall_ahead_s,
        monotonic_offset_s=between.offset_s,
        error_s=between.error_s,
    )


class Comparisons(NamedTuple):
    """All that was measured of one rank's clocks in an attempt, in order of time."""

    monotonic_at: Floats
    monotonic_offset_s: Floats
    error_s: Floats

    def offsets_at(self, monotonic_at: Floats) -> Floats:
        """Returns offsets along a line between two comparisons, since clocks drift steadily, and
        the nearest outside. Comparisons much worse than the others are not used."""
        good = self.error_s <= WORST_ERROR * np.median(self.error_s)
        return np.interp(monotonic_at, self.monotonic_at[good], self.monotonic_offset_s[good])


class Timeline(NamedTuple):
    """Puts events of all ranks of one attempt on rank 0's clock."""

    wall_ahead_s: dict[int, float]
    """Rank -> its wall clock minus its monotonic clock when its file was begun."""
    comparisons: dict[int, Comparisons]

    def place(self, rank: int, monotonic_at: Floats) -> Floats:
        """Returns seconds since 1970 on rank 0's clock. The clocks of a host that was never
        compared with it are believed."""
        compared = self.comparisons.get(rank)
        if rank == 0 or compared is None or 0 not in self.wall_ahead_s:
            return monotonic_at + self.wall_ahead_s[rank]
        return monotonic_at - compared.offsets_at(monotonic_at) + self.wall_ahead_s[0]
