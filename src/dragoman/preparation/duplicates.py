"""Decides which clean pairs stay: the first of each duplicate, and none that is held out.

Keys of all slices come in, a truth value for each pair goes out. Keys are compared a range of
values at a time, so that memory is bounded however many pairs there are.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]

KEYS_AT_ONCE = 20_000_000


class Decision(NamedTuple):
    is_duplicate: list[Flags]
    is_leak: list[Flags]
    """One array per slice; a pair that is both counts as a leak."""


def decide(
    slices: Sequence[Keys], held_out: Keys, drop_duplicates: bool, keys_at_once: int = KEYS_AT_ONCE
) -> Decision:
    total = sum(map(len, slices))
    ranges = max(1, -(-total // keys_at_once))
    is_duplicate = [np.zeros(len(keys), dtype=np.bool_) for keys in slices]
    is_leak = [np.isin(keys, held_out) for keys in slices]
    if not drop_duplicates:
        return Decision(is_duplicate, is_leak)
    for number in range(ranges):
        # Keys are hashes, so equal ranges of values hold about equally many.
        in_range = [np.flatnonzero(_range_of(keys, ranges) == number) for keys in slices]
        keys = np.concatenate([s[places] for s, places in zip(slices, in_range, strict=True)])
        is_first = np.zeros(len(keys), dtype=np.bool_)
        is_first[np.unique(keys, return_index=True)[1]] = True
        begin = 0
        for flags, places in zip(is_duplicate, in_range, strict=True):
            flags[places] = ~is_first[begin : begin + len(places)]
            begin += len(places)
    only_duplicate = [d & ~leak for d, leak in zip(is_duplicate, is_leak, strict=True)]
    return Decision(only_duplicate, is_leak)


def _range_of(keys: Keys, ranges: int) -> npt.NDArray[np.uint64]:
    return (keys >> np.uint64(32)) * np.uint64(ranges) >> np.uint64(32)
