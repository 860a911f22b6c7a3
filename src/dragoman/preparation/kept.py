"""Which clean pairs stay: the stages `kept` and `overlap`, from the keys of all slices.

Few keys are compared here and now. Of more, each slice's are sorted, ranges of values are compared,
and each slice picks up what all ranges say of it: three rounds of tasks, none of which needs more
memory than a range or a slice does, nor reads more than it needs.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from dragoman.console import waiting
from dragoman.corpus.cleaning import EXAMPLES_KEPT, keys, normalized
from dragoman.corpus.pair import Pair
from dragoman.preparation.duplicates import Flags, Keys, decide, find_overlap
from dragoman.preparation.plan import Plan
from dragoman.preparation.stage import Stage, from_text
from dragoman.preparation.task import (
    Given,
    Input,
    Inputs,
    Joined,
    Result,
    StageFile,
    StageRange,
    Task,
)
from dragoman.preparation.workers import Workers, run_tasks

KEYS_AT_ONCE = 5_000_000
"""Take about 300 MB while they are compared."""

_DUPLICATE, _LEAK = 1, 2
Said = TypeVar("Said", bound=np.generic)


def mark_kept(plan: Plan, workers: Workers) -> int:
    """Marks duplicates and leaks; returns the number of clean pairs before."""
    numbers = plan.clean.numbers()
    pairs: list[int] = [plan.clean.record(number)["pairs"] for number in numbers]
    total = sum(pairs)
    stages = [plan.kept, *([plan.overlap] if plan.has_overlap else [])]
    if all(stage.is_done(number) for stage in stages for number in numbers):
        return total
    if total <= KEYS_AT_ONCE:
        _compare_all(plan, numbers)
    else:
        _compare_ranges(plan, numbers, pairs, workers)
    return total


def _held_out_keys(plan: Plan) -> Keys:
    cleaning = plan.config.cleaning
    if not cleaning.drop_leaks:
        return keys([], cleaning)
    held_out = (pair for n in plan.held_out.numbers() for pair in plan.held_out.pairs(n))
    return keys([normalized(pair, cleaning) for pair in held_out], cleaning)


def _compare_all(plan: Plan, numbers: Sequence[int]) -> None:
    with waiting("finding duplicates"):
        of_slices = [plan.clean.keys(number) for number in numbers]
        drop = plan.config.cleaning.duplicates != "keep"
        decision = decide(of_slices, _held_out_keys(plan), drop)
    for number, duplicate, leak in zip(numbers, *decision, strict=True):
        if not plan.kept.is_done(number):
            kept = _kept(duplicate, leak, partial(plan.clean.pairs, number))
            plan.kept.finish(number, kept.record, kept.contents)
    if plan.has_overlap:
        with waiting("comparing sources"):
            overlap = find_overlap(
                of_slices,
                [~(duplicate | leak) for duplicate, leak in zip(*decision, strict=True)],
                [plan.clean.record(number)["source"] for number in numbers],
                [source.weight for source in plan.config.data.train],
            )
        for number, weights, duplicates_of in zip(numbers, *overlap, strict=True):
            contents = {"weights": weights.tobytes()} if plan.has_larger_weights else {}
            plan.overlap.finish(number, {"duplicates_of": duplicates_of}, contents)


def _kept(duplicate: Flags, leak: Flags, read: Callable[[], list[Pair]]) -> Result:
    """Returns a slice's result of the stage `kept`; `read` gives its pairs, for examples."""
    reasons = {"duplicate": duplicate, "in validation or test": leak}
    dropped = {reason: int(holds.sum()) for reason, holds in reasons.items() if holds.any()}
    pairs = read() if dropped else []
    examples = {
        reason: [pairs[place] for place in np.flatnonzero(reasons[reason])[:EXAMPLES_KEPT]]
        for reason in dropped
    }
    return Result(
        {"dropped": dropped, "examples": examples},
        {"flags": (~(duplicate | leak)).tobytes()},
        pairs=len(duplicate),
    )


class RangeSettings(NamedTuple):
    lengths: list[int]
    """How many pairs of each slice are in the range."""
    drop_duplicates: bool
    source_of: list[int]
    """The source of each slice."""
    weights: list[float]
    """Of each source; none: sources are not compared."""


def _compare_ranges(
    plan: Plan, numbers: Sequence[int], pairs: Sequence[int], workers: Workers
) -> None:
    total = sum(pairs)
    ranges = -(-total // KEYS_AT_ONCE)
    in_order, compared = plan.sorted(ranges), plan.compared(ranges)
    sorting = (
        Task(sort_keys, ranges, {"keys": StageFile(plan.clean, n, "keys")}, in_order, n)
        for n in numbers
        if not in_order.is_done(n)
    )
    run_tasks(workers, sorting, "sorting keys", total)
    # For each slice, where each of the ranges begins in its keys.
    bounds = np.array([in_order.record(n)["bounds"] for n in numbers], dtype=np.int64)
    comparing = _compare_tasks(plan, numbers, bounds, in_order, compared)
    run_tasks(workers, comparing, "finding duplicates", total)
    # For each slice, where its pairs begin in what each range says.
    lengths = np.diff(bounds, axis=1)
    begins = np.cumsum(lengths, axis=0) - lengths

    def said(place: int, suffix: str, size: int) -> Joined:
        of_slice = zip(begins[place], lengths[place], strict=True)
        return Joined(
            [
                StageRange(compared, number, suffix, size * int(begin), size * int(begin + length))
                for number, (begin, length) in enumerate(of_slice)
            ]
        )

    marking = (
        Task(
            mark_slice,
            None,
            {
                "order": StageFile(in_order, n, "order"),
                "codes": said(place, "codes", 1),
                **{side: StageFile(plan.clean, n, side) for side in ("source", "target")},
            },
            plan.kept,
            n,
        )
        for place, n in enumerate(numbers)
        if not plan.kept.is_done(n)
    )
    run_tasks(workers, marking, "marking duplicates", total)
    if plan.has_overlap:
        records = [compared.record(number)["duplicates_of"] for number in range(ranges)]
        duplicates_of = np.sum(records, axis=0)
        has_weights = plan.has_larger_weights
        weighing = (
            Task(
                weigh_slice,
                duplicates_of[place].tolist(),
                {
                    "order": StageFile(in_order, n, "order"),
                    **({"weights": said(place, "weights", 8)} if has_weights else {}),
                },
                plan.overlap,
                n,
            )
            for place, n in enumerate(numbers)
            if not plan.overlap.is_done(n)
        )
        run_tasks(workers, weighing, "comparing sources", total)


def _compare_tasks(
    plan: Plan,
    numbers: Sequence[int],
    bounds: npt.NDArray[np.int64],
    in_order: Stage,
    compared: Stage,
) -> Iterator[Task]:
    held_out = Given(_held_out_keys(plan).tobytes())
    settings = RangeSettings(
        [],
        plan.config.cleaning.duplicates != "keep",
        [plan.clean.record(n)["source"] for n in numbers],
        [source.weight for source in plan.config.data.train] if plan.has_overlap else [],
    )
    for number in range(bounds.shape[1] - 1):
        if not compared.is_done(number):
            parts = [
                StageRange(in_order, n, "keys", 8 * int(begin), 8 * int(end))
                for n, (begin, end) in zip(numbers, bounds[:, number : number + 2], strict=True)
            ]
            inputs: Inputs = {"keys": Joined(parts), "held_out": held_out}
            lengths = (bounds[:, number + 1] - bounds[:, number]).tolist()
            own = settings._replace(lengths=lengths)
            yield Task(compare_range, own, inputs, compared, number)


def sort_keys(ranges: int, inputs: Inputs) -> Result:
    """Sorts the keys of a slice, equal ones in the order of their pairs."""
    of_slice = _keys(inputs["keys"].read())
    order = np.argsort(of_slice, kind="stable")
    in_order = of_slice[order]
    bounds = np.searchsorted(range_of(in_order, ranges), np.arange(ranges + 1)).tolist()
    return Result(
        {"bounds": bounds},
        {"keys": in_order.tobytes(), "order": order.astype("<u4").tobytes()},
        pairs=len(order),
    )


def range_of(of_pairs: Keys, ranges: int) -> npt.NDArray[np.uint64]:
    """Returns the range of each key: keys are hashes, so equal ranges hold about equally many."""
    return (of_pairs >> np.uint64(32)) * np.uint64(ranges) >> np.uint64(32)


def compare_range(settings: RangeSettings, inputs: Inputs) -> Result:
    """Decides about all pairs whose keys are in a range, slice by slice in the order of keys."""
    parts = np.split(_keys(inputs["keys"].read()), np.cumsum(settings.lengths)[:-1])
    held_out = _keys(inputs["held_out"].read())
    duplicates, leaks = decide(parts, held_out, settings.drop_duplicates)
    codes = [_DUPLICATE * d + _LEAK * leak for d, leak in zip(duplicates, leaks, strict=True)]
    contents = {"codes": np.concatenate(codes).astype(np.uint8).tobytes()}
    record: dict[str, Any] = {}
    if settings.weights:
        kept = [code == 0 for code in codes]
        overlap = find_overlap(parts, kept, settings.source_of, settings.weights)
        record["duplicates_of"] = overlap.duplicates_of
        contents["weights"] = np.concatenate(overlap.weights).tobytes()
    return Result(record, contents, pairs=sum(map(len, parts)))


def mark_slice(_: None, inputs: Inputs) -> Result:
    codes = _gathered(inputs["codes"], inputs["order"], np.uint8)
    return _kept(
        codes == _DUPLICATE,
        codes == _LEAK,
        lambda: from_text(inputs["source"].read(), inputs["target"].read()),
    )


def weigh_slice(duplicates_of: list[int], inputs: Inputs) -> Result:
    contents = {}
    if "weights" in inputs:
        weights = _gathered(inputs["weights"], inputs["order"], np.float64)
        contents["weights"] = weights.tobytes()
    pairs = len(inputs["order"].read()) // 4
    return Result({"duplicates_of": duplicates_of}, contents, pairs=pairs)


def _gathered(parts: Input, order: Input, dtype: type[Said]) -> npt.NDArray[Said]:
    """Returns what all ranges say of a slice, in the order of its pairs."""
    said = np.frombuffer(parts.read(), dtype=dtype)
    of_pairs = np.empty_like(said)
    of_pairs[np.frombuffer(order.read(), dtype="<u4")] = said
    return of_pairs


def _keys(content: bytes) -> Keys:
    return np.frombuffer(content, dtype="<u8")
