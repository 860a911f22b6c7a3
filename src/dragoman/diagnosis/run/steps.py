"""The parts of each step over all ranks: what the network took, and what waiting for the slowest.

Every rank records its own parts, and `communication` on a rank is the network's time plus what it
waits for the slowest rank. So over the ranks of one step the network's part is the least of them;
the rank that has it arrived last, and what another rank waits beyond that, it waits for that one.

The split of a step is that of the rank that waited longest: its data, its computing, the network,
and the waiting add up to the step, and without the waiting it would have been that much shorter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np

from dragoman.diagnosis.run.attempts import Attempt
from dragoman.telemetry.read.tables import Array, Table, group_column, known_mean

HANG_S = 60.0
HANG_OVER_MEDIAN = 20.0
"""A step that takes longer than both is a hang: it says nothing about the others."""

PARTS = ("data", "forward", "backward", "communication", "checkpoint", "optimizer", "rest")
"""What a rank times of each of its steps; they add up to the step."""
_COMPUTING = ("forward", "backward", "optimizer")


class StepSplit(NamedTuple):
    """Of a mean step, in seconds. They add up to `step_s`, but for what was not recorded."""

    step_s: float
    compute_s: float
    network_s: float
    """Exposed: what no rank could hide behind backward. NaN: not recorded."""
    straggling_s: float
    """The rank that was ready first waits so long for the last. NaN: not recorded."""
    data_s: float
    checkpoint_s: float
    rest_s: float
    late_data_s: float
    """Of straggling: the last rank was late because it waited longer for its data."""
    small_message_s: float
    """A step's one small message to all ranks, with what else is in `rest`: at most so long takes
    a way through the network that carries next to nothing."""
    backward_s: float
    busy_s: float
    """Computing, in the mean over all ranks."""


@dataclass(frozen=True)
class StepParts:
    """A column for each figure of `StepSplit`, over the steps that all ranks have recorded."""

    attempt: Array
    step: Array
    at: Array
    columns: dict[str, Array]
    waits_s: dict[int, Array]
    """Rank -> what it waited for the last one. NaN: not recorded, or it took no part."""
    is_first: Array
    """Of its attempt: memory is found, connections are made."""
    missing_ranks: dict[int, int]
    """Attempt -> how many of its ranks have left no steps."""

    def __len__(self) -> int:
        return len(self.step)

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    @property
    def usual(self) -> Array:
        """Steps that tell how the others are: not the first of an attempt, and no hangs."""
        step_s = self["step_s"]
        if not len(self):
            return np.zeros(0, dtype=bool)
        others = ~self.is_first if not self.is_first.all() else np.ones(len(self), dtype=bool)
        return others & ~is_hang(step_s)

    def mean(self, rows: Array | slice) -> StepSplit:
        """Over those of these steps that have recorded it."""
        return StepSplit(
            **{name: known_mean(values[rows]) for name, values in self.columns.items()}
        )


def is_hang(step_s: Array) -> Array:
    return np.asarray(step_s > longest_usual_s(step_s))


def longest_usual_s(step_s: Array) -> float:
    """Returns how long a step may take, or a pause between two of them, before it is a hang."""
    return max(HANG_S, HANG_OVER_MEDIAN * float(np.median(step_s)) if len(step_s) else 0.0)


def step_parts_of(attempts: Sequence[Attempt], steps_by_rank: Mapping[int, Table]) -> StepParts:
    """`steps_by_rank`: those that count, in order."""
    found = [
        _of_attempt(attempt, own)
        for attempt in attempts
        if (own := steps_of_attempt(attempt.number, steps_by_rank))
    ]
    if not found:
        none, no_step = np.empty(0), np.empty(0, dtype=np.int64)
        columns = dict.fromkeys(StepSplit._fields, none)
        return StepParts(no_step, no_step, none, columns, {}, no_step.astype(bool), {})
    ranks = sorted({rank for piece in found for rank in piece.waits_s})
    return StepParts(
        attempt=np.concatenate([piece.attempt for piece in found]),
        step=np.concatenate([piece.step for piece in found]),
        at=np.concatenate([piece.at for piece in found]),
        columns={
            name: np.concatenate([piece.columns[name] for piece in found])
            for name in StepSplit._fields
        },
        waits_s={
            rank: np.concatenate(
                [piece.waits_s.get(rank, np.full(len(piece), np.nan)) for piece in found]
            )
            for rank in ranks
        },
        is_first=np.concatenate([piece.is_first for piece in found]),
        missing_ranks={n: lacking for piece in found for n, lacking in piece.missing_ranks.items()},
    )


def steps_of_attempt(attempt: int, steps_by_rank: Mapping[int, Table]) -> dict[int, Table]:
    """By rank; ranks without any are left out."""
    found: dict[int, Table] = {}
    for rank, steps in steps_by_rank.items():
        begin, end = np.searchsorted(steps["attempt"], [attempt, attempt + 1])
        if begin < end:
            found[rank] = steps.where(slice(begin, end))
    return found


def _of_attempt(attempt: Attempt, own: Mapping[int, Table]) -> StepParts:
    ranks = sorted(own)
    tables = _of_common_steps([own[rank] for rank in ranks])
    parts_s = {
        name: np.stack([group_column(table, "parts_s", name) for table in tables]) for name in PARTS
    }
    columns, waits = split_steps(np.stack([table["step_s"] for table in tables]), parts_s)
    lacking = attempt.ranks - len(ranks)
    return StepParts(
        attempt=tables[0]["attempt"],
        step=tables[0]["step"],
        at=tables[0]["at"],
        columns=columns,
        waits_s=dict(zip(ranks, waits, strict=True)),
        is_first=tables[0]["step"] == int(attempt.steps["step"][0]),
        missing_ranks={attempt.number: lacking} if lacking > 0 else {},
    )


def _of_common_steps(tables: Sequence[Table]) -> list[Table]:
    """The steps that all have, in the order of the first; each table has a step once."""
    numbers = [table["step"] for table in tables]
    if all(np.array_equal(own, numbers[0]) for own in numbers[1:]):
        return list(tables)
    common = reduce(np.intersect1d, numbers)
    return [table.where(np.isin(table["step"], common)) for table in tables]


def split_steps(step_s: Array, parts_s: Mapping[str, Array]) -> tuple[dict[str, Array], Array]:
    """Returns the columns of `StepSplit`, and what each rank waited for the last one.

    `step_s` and each of `PARTS` are ranks x steps, as is the waiting. NaN: not recorded.
    """
    steps = np.arange(step_s.shape[1])
    data, checkpoint, rest = (
        np.nan_to_num(parts_s[name]) for name in ("data", "checkpoint", "rest")
    )
    backward = np.nan_to_num(parts_s["backward"])
    compute = sum((np.nan_to_num(parts_s[name]) for name in _COMPUTING), np.zeros_like(step_s))
    communication = parts_s["communication"] if len(step_s) > 1 else np.zeros_like(step_s)
    is_known = ~np.isnan(communication).any(axis=0)
    communication = np.where(is_known, communication, 0.0)
    last, waiting = communication.argmin(axis=0), communication.argmax(axis=0)
    network = communication[last, steps]
    columns = {
        "step_s": step_s[waiting, steps],
        "compute_s": compute[waiting, steps],
        "network_s": np.where(is_known, network, np.nan),
        "straggling_s": np.where(is_known, communication[waiting, steps] - network, np.nan),
        "data_s": data[waiting, steps],
        "checkpoint_s": checkpoint[waiting, steps],
        "rest_s": rest[waiting, steps],
        "late_data_s": np.maximum(0.0, data[last, steps] - data[waiting, steps]),
        "small_message_s": rest.min(axis=0),
        "backward_s": backward[waiting, steps],
        "busy_s": compute.mean(axis=0),
    }
    return columns, np.where(is_known, communication - network, np.nan)
