"""Decides which clean pairs stay: the first of each duplicate, and none that is held out.

Keys of all slices come in, a truth value for each pair goes out, and what sources have in common.
All keys of one range of values do as well as all keys: `key_ranges` compares those of large corpora
a range at a time.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]


class Decision(NamedTuple):
    is_duplicate: list[Flags]
    is_leak: list[Flags]
    """One array per slice; a pair that is both counts as a leak."""


def decide(slices: Sequence[Keys], held_out: Keys, drop_duplicates: bool) -> Decision:
    is_leak = [np.isin(keys, held_out) for keys in slices]
    if not drop_duplicates:
        return Decision([np.zeros(len(keys), dtype=np.bool_) for keys in slices], is_leak)
    keys = _joined(slices)
    is_first = np.zeros(len(keys), dtype=np.bool_)
    is_first[np.unique(keys, return_index=True)[1]] = True
    repeated = _parted(~is_first, slices)
    return Decision([r & ~leak for r, leak in zip(repeated, is_leak, strict=True)], is_leak)


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
) -> Overlap:
    """`source_of` is the number of each slice's source, `weights` has one for each source."""
    counts = np.zeros((len(slices), len(weights)), dtype=np.int64)
    keys = _joined(slices)
    lengths = [len(of_slice) for of_slice in slices]
    of_slice = np.repeat(np.arange(len(slices), dtype=np.int32), lengths)
    of_source = np.asarray(source_of, dtype=np.int32)[of_slice]
    kept = np.concatenate([np.zeros(0, np.bool_), *is_kept])
    first, kind = np.unique(keys, return_index=True, return_inverse=True)[1:]
    first_alike = first[kind]
    # Where the first is not kept it is held out, and so is every pair like it.
    is_duplicate = (first_alike != np.arange(len(keys))) & kept[first_alike]
    where = of_slice[is_duplicate], of_source[first_alike[is_duplicate]]
    np.add.at(counts, where, 1)
    largest = np.zeros(len(first))
    np.maximum.at(largest, kind, np.asarray(weights, dtype=np.float64)[of_source])
    return Overlap(_parted(largest[kind], slices), counts.tolist())


def _joined(slices: Sequence[Keys]) -> Keys:
    return np.concatenate([np.zeros(0, np.uint64), *slices])


def _parted(of_pairs: npt.NDArray[Any], slices: Sequence[Keys]) -> list[npt.NDArray[Any]]:
    ends = np.cumsum([len(keys) for keys in slices])
    return np.split(of_pairs, ends[:-1]) if len(slices) else []
