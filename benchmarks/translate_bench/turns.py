"""Candidates take turns on the same sentences; what each turn took becomes figures."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from train_bench.watch import CandidateError

from translate_bench.candidates import Candidate


class Measured(NamedTuple):
    seconds: dict[str, list[float]]
    """Of all sentences, by candidate, one a turn."""
    first_s: dict[str, list[float]]
    """Of a single sentence."""
    texts: dict[str, list[str]]

    def ratios(self, one: str, other: str) -> list[float]:
        """Returns how many times as fast one was as another, within each turn."""
        pairs = zip(self.seconds[one], self.seconds[other], strict=True)
        return [others / ours for ours, others in pairs]


def take_turns(
    candidates: Mapping[str, Candidate],
    sentences: Sequence[str],
    beam: int,
    rounds: int,
    failed: Callable[[str, str], None],
) -> Measured:
    """Measures in turns after one that does not count; one that fails is left out from then on."""
    going_on = dict(candidates)
    measured = Measured({}, {}, {})

    def turn(name: str) -> None:
        try:
            every = going_on[name](sentences, beam)
            first = going_on[name](sentences[:1], beam)
        except CandidateError as error:
            failed(name, str(error))
            del going_on[name]
            for kept in measured:
                kept.pop(name, None)
            return
        if name in measured.texts:
            measured.seconds[name].append(every.seconds)
            measured.first_s[name].append(first.seconds)
        else:
            measured.texts[name] = every.texts
            measured.seconds[name], measured.first_s[name] = [], []

    for number in range(rounds + 1):
        names = list(going_on)
        # Each takes every place in the order, because a candidate leaves its data in the cache.
        for name in names[number % len(names) :] + names[: number % len(names)]:
            turn(name)
    return measured
