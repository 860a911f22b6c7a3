"""Fragments: parts of the weights, each synchronized at its own step of a window. Pure.

With one fragment and no delay, all weights are synchronized in one burst at the end of a window.
With several, they set out at equal distances, and while one travels computing goes on. When one
departs and arrives follows from the step alone: a run that is resumed repeats it, and all ranks
send the same fragments in the same order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from dragoman.config import SyncSettings


@dataclass(frozen=True)
class FragmentSchedule:
    window_steps: int
    """Between two departures of a fragment."""
    fragments: int = 1
    delay: int = 0
    """Steps that a fragment may travel."""

    @classmethod
    def of(cls, settings: SyncSettings) -> "FragmentSchedule":
        return cls(settings.window_steps, settings.fragments or 1, settings.delay or 0)

    def departing(self, step: int) -> list[int]:
        """Returns the fragments that set out after this step."""
        return [
            fragment
            for fragment in range(self.fragments)
            if (step - self._first_departure(fragment)) % self.window_steps == 0
        ]

    def arriving(self, step: int) -> list[int]:
        """Returns the fragments that have to be there after this step."""
        return self.departing(step - self.delay) if step > self.delay else []

    def share_sent(self, step: int) -> dict[int, float]:
        """Returns which part of each fragment is sent in this step, if evenly while it travels."""
        if not self.delay:
            return dict.fromkeys(self.departing(step), 1.0)
        departed = [*range(max(1, step - self.delay), step)]
        return {
            fragment: 1.0 / self.delay for each in departed for fragment in self.departing(each)
        }

    def share_left(self, step: int) -> dict[int, float]:
        """Returns which part of each fragment on its way is left to be sent in this step, at the
        end of which everything has to be there."""
        return {
            fragment: (each + self.delay - step + 1) / self.delay
            for each in range(max(1, step - self.delay), step)
            for fragment in self.departing(each)
        }

    def _first_departure(self, fragment: int) -> int:
        return (fragment + 1) * self.window_steps // self.fragments


def cut(sizes: Sequence[int], fragments: int) -> list[list[int]]:
    """Returns the places of the tensors of each fragment: neighbors, of about equally many
    elements in all."""
    whole = max(1, sum(sizes))
    members: list[list[int]] = [[] for _ in range(fragments)]
    for place, (end, size) in enumerate(zip(accumulate(sizes), sizes, strict=True)):
        middle = end - size / 2
        members[min(fragments - 1, int(middle * fragments / whole))].append(place)
    return members
