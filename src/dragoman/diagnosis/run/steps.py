"""The parts of each step over all ranks: what the network took, and what waiting for the slowest.

A rank is ready when backward has made its last gradients. How far apart the ranks are ready is what
they wait for the slowest; from the moment at which the last one is ready to the moment at which the
last one has all sums, they wait for the network. Not every rank has its sums at that moment: an
all-reduce returns earlier on some ranks than on others, and those wait in the step's small message
instead. So `communication` of a single rank says little about the network.

No clock of another host is needed: the small message ends for nobody before the last rank has sent
it, so it ends everywhere at about the same moment. From there each rank counts by its own clock
until it is ready in the next step. What the message itself takes is how wrong that can be.

The split of a step is that of the rank that was ready first: its data, its computing, the waiting
and the network add up to the step, and without the waiting it would have been that much shorter.
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

PARTS = (
    "data",
    "forward",
    "backward",
    "communication",
    "agreement",
    "checkpoint",
    "optimizer",
    "rest",
)
"""What a rank times of each of its steps; they add up to the step. `agreement` is the step's small
message, which older records have in `rest`."""
_COMPUTING = ("forward", "backward", "optimizer")
_BEFORE_READY = ("data", "forward", "backward")
_AFTER_AGREEMENT = ("checkpoint", "optimizer")


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
    """A step's one small message to all ranks, on the rank that waits least in it: at most so long
    takes a way through the network that carries next to nothing, and so wrong may straggling and
    network be, what one has too much the other has too little."""
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
    step = tables[0]["step"]
    ready_s = np.stack([table["ready_s"] for table in tables])
    if np.isnan(ready_s).any():
        ready_s = ready_as_timed(step, parts_s)
    lacking = attempt.ranks - len(ranks)
    columns, waits = split_steps(step, parts_s, ready_s, lacks_ranks=lacking > 0)
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


def ready_as_timed(step: Array, parts_s: Mapping[str, Array]) -> Array:
    """Returns when each rank was ready, ranks x steps, as far as its parts tell: older records do
    not have the moment itself. A rank that ends one step late begins the next one late."""
    ends_s, ready_s = (
        sum((np.nan_to_num(parts_s[name]) for name in names), np.zeros_like(parts_s["data"]))
        for names in (_AFTER_AGREEMENT, _BEFORE_READY)
    )
    follows = np.diff(step) == 1
    ready_s[:, 1:] += np.where(follows, ends_s[:, :-1], 0.0)
    return ready_s


def split_steps(
    step: Array, parts_s: Mapping[str, Array], ready_s: Array, lacks_ranks: bool = False
) -> tuple[dict[str, Array], Array]:
    """Returns the columns of `StepSplit`, and what each rank waited for the last one.

    `step` are their numbers; each of `PARTS` and `ready_s` of `StepDone` are ranks x steps, as is
    the waiting. NaN: not recorded. `lacks_ranks`: one that has left no record may have had its sums
    last.
    """
    known = {name: np.nan_to_num(parts_s[name]) for name in PARTS}
    ranks, count = ready_s.shape
    steps = np.arange(count)
    is_known = ranks == 1 or ~np.isnan(parts_s["communication"]).any(axis=0)
    last, first = ready_s.argmax(axis=0), ready_s.argmin(axis=0)
    waits = ready_s[last, steps] - ready_s
    straggling = waits[first, steps]
    has_sums = ready_s + known["communication"]
    all_have_sums = has_sums.max(axis=0)
    if lacks_ranks:  # the others waited for it in the small message
        left = has_sums + known["agreement"]
        all_have_sums = left.max(axis=0) - known["agreement"].min()
    network = all_have_sums - ready_s[last, steps] if ranks > 1 else np.zeros(count)
    own = {name: part_s[first, steps] for name, part_s in known.items()}
    # What a rank does after the message delays it in the next step. So it is told by the rank that
    # is ready first there: with another's, what all wait for would be counted twice.
    ending = np.where(np.diff(step, append=step[-1:]) == 1, np.append(first[1:], first[-1:]), first)
    own |= {name: known[name][ending, steps] for name in _AFTER_AGREEMENT}
    computed = sum((own[name] for name in _COMPUTING), np.zeros(count))
    # In the small message, the first one waits for those that have their sums later.
    waited_there = np.where(is_known, all_have_sums - has_sums[first, steps], 0.0)
    rest = np.maximum(0.0, own["rest"] + own["agreement"] - waited_there)
    of_others = np.where(is_known, straggling + network, 0.0)
    is_recorded = known["agreement"].any()
    columns = {
        "step_s": own["data"] + computed + of_others + own["checkpoint"] + rest,
        "compute_s": computed,
        "network_s": np.where(is_known, network, np.nan),
        "straggling_s": np.where(is_known, straggling, np.nan),
        "data_s": own["data"],
        "checkpoint_s": own["checkpoint"],
        "rest_s": rest,
        "late_data_s": np.maximum(0.0, known["data"][last, steps] - own["data"]),
        "small_message_s": known["agreement" if is_recorded else "rest"].min(axis=0),
        "backward_s": own["backward"],
        "busy_s": sum((known[name] for name in _COMPUTING), np.zeros_like(ready_s)).mean(axis=0),
    }
    return columns, np.where(is_known, waits, np.nan)
