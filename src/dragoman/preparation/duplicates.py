"""Decides which clean pairs stay: the first of each duplicate, and none that is held out.

Keys of all slices come in, a truth value for each pair goes out, and what sources have in common.
Keys are compared a range of values at a time, so that memory is bounded however many pairs there
are.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]

KEYS_AT_ONCE = 20_000_000


class Decision(NamedTuple):
    is_duplicate: list[Flags]
    is_leak: list[Flags]
    """One array per slice; a pair that is both counts as a leak."""


def decide(
    slices: Sequence[Keys], held_out: Keys, drop_duplicates: bool, keys_at_once: int = KEYS_AT_ONCE
) -> Decision:
    ranges = _number_of_ranges(slices, keys_at_once)
    is_duplicate = [np.zeros(len(keys), dtype=np.bool_) for keys in slices]
    is_leak = [np.isin(keys, held_out) for keys in slices]
    if not drop_duplicates:
        return Decision(is_duplicate, is_leak)
    for in_range, keys in _by_ranges(slices, ranges):
        is_first = np.zeros(len(keys), dtype=np.bool_)
        is_first[np.unique(keys, return_index=True)[1]] = True
        begin = 0
        for flags, places in zip(is_duplicate, in_range, strict=True):
            flags[places] = ~is_first[begin : begin + len(places)]
            begin += len(places)
    only_duplicate = [d & ~leak for d, leak in zip(is_duplicate, is_leak, strict=True)]
    return Decision(only_duplicate, is_leak)


class Overlap(NamedTuple):
    """What sources have in common; one item per slice."""

    weights: list[npt.NDArray[np.float64]]
    """For each pair the largest weight of the sources in which it occurs."""
    duplicates_of: list[list[int]]
    """By source: how many of the slice's pairs were dropped as duplicates of a pair there."""


def find_overlap(
    slices: Sequence[Keys],
    is_kept: Sequence[Flags],
    source_of: Sequence[int],
    weights: Sequence[float],
    keys_at_once: int = KEYS_AT_ONCE,
) -> Overlap:
    """`source_of` is the number of each slice's source, `weights` has one for each source."""
    counts = np.zeros((len(slices), len(weights)), dtype=np.int64)
    found = [np.zeros(len(keys)) for keys in slices]
    for in_range, keys in _by_ranges(slices, _number_of_ranges(slices, keys_at_once)):
        lengths = [len(places) for places in in_range]
        of_slice = np.repeat(np.arange(len(slices), dtype=np.int32), lengths)
        of_source = np.asarray(source_of, dtype=np.int32)[of_slice]
        kept = np.concatenate([k[places] for k, places in zip(is_kept, in_range, strict=True)])
        first, kind = np.unique(keys, return_index=True, return_inverse=True)[1:]
        first_alike = first[kind]
        # Where the first is not kept it is held out, and so is every pair like it.
        is_duplicate = (first_alike != np.arange(len(keys))) & kept[first_alike]
        where = of_slice[is_duplicate], of_source[first_alike[is_duplicate]]
        np.add.at(counts, where, 1)
        largest = np.zeros(len(first))
        np.maximum.at(largest, kind, np.asarray(weights, dtype=np.float64)[of_source])
        ends = np.cumsum(lengths)[:-1]
        for of_pairs, places, part in zip(
            found, in_range, np.split(largest[kind], ends), strict=True
        ):
            of_pairs[places] = part
    return Overlap(found, counts.tolist())


def _number_of_ranges(slices: Sequence[Keys], keys_at_once: int) -> int:
    return max(1, -(-sum(map(len, slices)) // keys_at_once))


def _by_ranges(slices: Sequence[Keys], ranges: int) -> Iterator[tuple[list[Places], Keys]]:
    """Yields the places of the keys in each range of values, slice by slice, and these keys.

    Keys are hashes, so equal ranges of values hold about equally many.
    """
    for number in range(ranges):
        in_range = [np.flatnonzero(_range_of(keys, ranges) == number) for keys in slices]
        yield (
            in_range,
            np.concatenate([s[places] for s, places in zip(slices, in_range, strict=True)]),
        )


def _range_of(keys: Keys, ranges: int) -> npt.NDArray[np.uint64]:
    return (keys >> np.uint64(32)) * np.uint64(ranges) >> np.uint64(32)
