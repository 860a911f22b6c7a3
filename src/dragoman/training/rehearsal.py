"""A rehearsal: what a run's steps and sums will take, measured by its own workers beforehand.

Each worker joins the others exactly as it would for training, builds the run's model and optimizer,
and times a few steps at the run's own shapes; then all time sums of the run's own size, and where
that is quick enough steps a second time, of some modes with gradients on their way. All of it is
thrown away: nothing is read but what comes in, and nothing is written.
"""

import dataclasses
import resource
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from dragoman.batches.amounts import amounts_of
from dragoman.batches.collate import collate
from dragoman.batches.loader import StepBatches
from dragoman.batches.plan import BatchPlan
from dragoman.batches.shapes import (
    BatchShape,
    StepShapes,
    lengths_of,
    shapes_of,
    share_of,
)
from dragoman.config import Config, parse_config
from dragoman.distributed.allocator import keep_freed_memory
from dragoman.distributed.consensus import all_or_none
from dragoman.distributed.devices import agreed_precision, memory_peak_bytes
from dragoman.distributed.group import Group, join
from dragoman.errors import RunError
from dragoman.model.loss import Objective
from dragoman.shards.files import PairIds
from dragoman.shards.passport import PASSPORT_NAME, PreparedData
from dragoman.sync.link import time_all_reduces, time_all_to_all
from dragoman.training.batch_plan import plan_prepared, refuse_idle_workers, usual_plan
from dragoman.training.setup import check_memory_for
from dragoman.training.updater import Updater, initial_model

STEPS = 24
"""Different steps of the plan, since their shapes differ; as many as there is time for."""
FEWEST_STEPS = 2
WARM_UP_SHARE = 0.25
"""Of the timed steps, those that are not counted where there are enough."""
FAULT_S = 1e-5
"""Of a page that memory grows by: 3 to 14 microseconds in a virtual machine (2026-11)."""
GROWING_SHARE = 0.01
"""Of a step's time, from which on its page faults make it one in which memory still grew."""
WHOLE_STEPS = 25
"""At most, with gradients on their way; the first one is warm-up."""
WHOLE_STEP_MODES = ("fp32", "bf16")
"""Whose steps are one update each, and alike, so that whole ones stand for those of a run."""
RATE = 1e-6
"""Of the updates, whose time does not depend on it."""
REPETITIONS = 3

Report = Callable[[dict[str, Any]], None]


class Order(NamedTuple):
    """What a worker is told, as JSON in one of its environment variables."""

    recipe: str
    """The config, as TOML."""
    vocabulary: int
    shapes: list[list[list[int]]]
    """Of the steps to take; empty: those of the data on the first worker's host, or made up."""
    box_s: float
    """About how long steps, sums, and whole steps may each take."""


class Timed(NamedTuple):
    """One step of a worker, as in `dragoman.check.result.Computing`."""

    step_s: float
    forward_s: float
    backward_s: float
    last_backward_s: float
    update_s: float
    page_faults: int


def rehearse(order: Order, report: Report) -> None:
    """Measures as one worker; `report` receives its figures, and now and then how far it is.

    Collective: every rank must call.
    """
    config = parse_config(order.recipe, "the rehearsal's recipe")
    keep_freed_memory()
    report({"phase": "started"})
    with join(config.training.device) as group:
        report({"phase": "joined"})
        hosts = group.gather(group.host)
        precision = agreed_precision(config.training.precision, group)
        config = config.with_training(precision=precision)
        all_or_none(
            group,
            lambda: check_memory_for(config, order.vocabulary, hosts.count(group.host), group),
        )
        shapes = common_shapes(order, config, group)
        model = initial_model(config, order.vocabulary)
        parameters = sum(parameter.numel() for parameter in model.parameters())
        objective = Objective(model, config.training.label_smoothing, config.training.r_drop)
        report({"phase": "computing"})
        own = computing(objective, config, shapes, group, order.box_s)
        if group.ranks == 1:
            report({"computing": own})
            return
        report({"phase": "summing"})
        sums = time_all_reduces(group, parameters, min(1.0, order.box_s / 4), REPETITIONS)
        slices_s = time_all_to_all(group, sums.elements, REPETITIONS)
        of_all_s = statistics.fmean(sums.seconds) * parameters / sums.elements
        slowest_s = max(group.gather(statistics.fmean(own["step_s"])))
        # The weights travel once before the first step, and a step is warm-up.
        is_quick = group.broadcast(2 * slowest_s + 4 * of_all_s <= order.box_s)
        whole_s = []
        # A machine that others share is faster in one second than in the next, so that steps are
        # timed a second time, some seconds after the first.
        if is_quick and config.sync.mode in WHOLE_STEP_MODES:
            whole_s = whole_steps(objective, config, shapes, hosts, group, order.box_s)
        elif is_quick:
            report({"phase": "computing"})
            own = in_all(own, computing(objective, config, shapes, group, order.box_s))
        report({"computing": own})
        if group.leads:
            report(
                {
                    "collective": {
                        "backend": "nccl" if group.device.type == "cuda" else "gloo",
                        "ranks": group.ranks,
                        "elements": sums.elements,
                        "seconds": sums.seconds,
                        "latency_s": sums.latency_s,
                        "all_to_all_s": slices_s,
                        "whole_step_s": whole_s,
                        "whole_step_mode": config.sync.mode if whole_s else "",
                    }
                }
            )


def common_shapes(order: Order, config: Config, group: Group) -> list[StepShapes]:
    """Returns the shapes of the steps to take, the same on every rank.

    Collective: every rank must call.
    """
    found = order.shapes or group.on_rank_0(lambda: _shapes_here(config, group.ranks))
    return [[BatchShape(*shape) for shape in step] for step in found]


def _shapes_here(config: Config, ranks: int) -> list[StepShapes]:
    folder = Path(config.prepared_folder)
    if (folder / PASSPORT_NAME).exists():
        return shapes_of(plan_prepared(PreparedData.open(folder), config, ranks), STEPS)
    return shapes_of(synthetic_plan(config, ranks), STEPS)


def synthetic_plan(config: Config, ranks: int) -> BatchPlan:
    """Returns the usual plan; refuses more workers than it has work for."""
    plan = usual_plan(config)
    refuse_idle_workers(plan, ranks, config.training)
    return plan


def computing(
    objective: Objective, config: Config, shapes: Sequence[StepShapes], group: Group, box_s: float
) -> dict[str, Any]:
    """Times steps of this rank on its own, beside those of all others.

    Where whole steps would take too long, some of their micro-batches stand for all of them.
    Collective: every rank must call.
    """
    alone = dataclasses.replace(group, rank=0, ranks=1)
    updater = Updater(objective, config, alone, [group.host])
    shares = [
        [step[number] for number in share_of(step, group.rank, group.ranks)] for step in shapes
    ]
    # Memory is taken and libraries are loaded in the first pass; the second one is an example.
    example = step_batches(objective, shapes[0], 1, group, most=1)
    for _ in range(2):
        first_s = _time_step(updater, example, group).step_s
        first_s = max(group.gather(first_s))
        if first_s <= box_s / FEWEST_STEPS / len(shares[0]):
            break
    most = max(1, int(box_s / FEWEST_STEPS / max(first_s, 1e-9)))
    timed: list[Timed] = []
    begun = time.perf_counter()
    for number, (step, share) in enumerate(zip(shapes, shares, strict=True), 1):
        # All ranks begin each step together, as they do where they wait for each other.
        passed_s = group.broadcast(time.perf_counter() - begun)
        if len(timed) >= FEWEST_STEPS and passed_s + passed_s / len(timed) > box_s:
            break
        part = step_batches(objective, step, number, group, most)
        timed.append(_scaled(_time_step(updater, part, group), share, share[:most]))
        if first_s > box_s:  # even a single micro-batch takes long: this one has to be enough
            break
    del updater
    worst = [
        _Cost(max(seconds), max(faults))
        for seconds, faults in zip(
            zip(*group.gather([each.step_s for each in timed]), strict=True),
            zip(*group.gather([each.page_faults for each in timed]), strict=True),
            strict=True,
        )
    ]
    timed = [timed[number] for number in counted(worst)]
    return {
        "host": group.host,
        "rank": group.rank,
        "step_s": [each.step_s for each in timed],
        "forward_s": statistics.fmean(each.forward_s for each in timed),
        "backward_s": statistics.fmean(each.backward_s for each in timed),
        "last_backward_s": statistics.fmean(each.last_backward_s for each in timed),
        "update_s": statistics.fmean(each.update_s for each in timed),
        "micro_batches": len(shares[0]),
        "peak_memory_bytes": int(memory_peak_bytes(group.device)),
    }


class _Cost(NamedTuple):
    """Of a step, on the rank that has the most of it."""

    seconds: float
    page_faults: int


def counted(steps: Sequence[_Cost]) -> list[int]:
    """Returns which steps, in order, are like those of a run that has its memory.

    The first quarter is warm-up. Later ones are left out where memory grew: shapes come in any
    order, and each that is the largest so far takes pages that a run takes once, in its first
    seconds. Where half of the rest grew, memory goes on to grow, and all of it counts.
    """
    rest = [*range(len(steps))][int(WARM_UP_SHARE * len(steps)) :]
    steady = [
        number
        for number in rest
        if FAULT_S * steps[number].page_faults <= GROWING_SHARE * steps[number].seconds
    ]
    return steady if 2 * len(steady) > len(rest) else rest


def in_all(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what `computing` would have returned of the steps of both."""
    before, after = len(first["step_s"]), len(second["step_s"])
    means = ("forward_s", "backward_s", "last_backward_s", "update_s")
    return {
        **second,
        "step_s": [*first["step_s"], *second["step_s"]],
        **{
            name: (before * first[name] + after * second[name]) / (before + after) for name in means
        },
        "peak_memory_bytes": max(first["peak_memory_bytes"], second["peak_memory_bytes"]),
    }


def whole_steps(
    objective: Objective,
    config: Config,
    shapes: Sequence[StepShapes],
    hosts: Sequence[str],
    group: Group,
    box_s: float,
) -> list[float]:
    """Times steps as the run takes them, with gradients on their way and the ranks' agreement.

    Collective: every rank must call.
    """
    group.pulse.enter("synchronization")
    found: list[_Cost] = []
    begun = time.perf_counter()
    updater = Updater(objective, config, group, hosts)
    message = [0.0] * (8 + 9 * group.ranks)
    for number in range(WHOLE_STEPS):
        work = step_batches(objective, shapes[number % len(shapes)], number + 1, group)
        group.sums(message)
        before, faults = time.perf_counter(), _page_faults()
        gradients = updater.gradients(work)
        group.sums(message)
        updater.update(gradients, RATE, is_finite=True)
        _wait_for(group)
        own = [time.perf_counter() - before, _page_faults() - faults]
        found.append(_Cost(*map(max, zip(*group.gather(own), strict=True))))
        passed_s = group.broadcast(time.perf_counter() - begun)
        if passed_s + found[-1].seconds > box_s:
            break
    updater.close()
    return [found[1:][number].seconds for number in counted(found[1:])]


def step_batches(
    objective: Objective, shapes: StepShapes, step: int, group: Group, most: int | None = None
) -> StepBatches:
    """Returns this rank's share of a step of these shapes, in words that mean nothing.

    With `most`, only so many micro-batches of it: the share itself may be larger than memory.
    """
    numbers = share_of(shapes, group.rank, group.ranks)[:most]
    lengths = [lengths_of(shapes[number]) for number in numbers]
    batches = []
    vocabulary, chance = objective.model.embedding.num_embeddings, np.random.default_rng(step)
    for of_batch in lengths:
        pairs = [PairIds(*(chance.integers(vocabulary, size=n) for n in pair)) for pair in of_batch]
        batches.append(collate(pairs, start=0, padding=0))
    tokens = sum(shape.target_tokens for shape in shapes)
    most = max(len(share_of(shapes, rank, group.ranks)) for rank in range(group.ranks))
    return StepBatches(step, batches, numbers, tokens, tokens, most, amounts_of(lengths))


def _time_step(updater: Updater, work: StepBatches, group: Group) -> Timed:
    group.gather(None)
    begun, faults = time.perf_counter(), _page_faults()
    gradients = updater.gradients(work)
    if gradients.ran_out:
        raise RunError(
            f"rank {group.rank} on {group.host} ran out of memory in a step of this recipe's "
            "shapes; lower training.micro_batch_tokens, or start fewer workers there"
        )
    computed = time.perf_counter()
    updater.update(gradients, RATE, is_finite=True)
    _wait_for(group)
    ended = time.perf_counter()
    forward_s, backward_s = gradients.parts_s["forward"], gradients.parts_s["backward"]
    last_s = backward_s / max(1, len(work.batches))
    grown = _page_faults() - faults
    return Timed(ended - begun, forward_s, backward_s, last_s, ended - computed, grown)


def _scaled(timed: Timed, share: StepShapes, part: StepShapes) -> Timed:
    """Returns what the whole of a rank's share takes, given what a part of it has taken."""
    more = _positions(share) / _positions(part) - 1.0
    forward_s, backward_s = more * timed.forward_s, more * timed.backward_s
    return timed._replace(
        step_s=timed.step_s + forward_s + backward_s,
        forward_s=timed.forward_s + forward_s,
        backward_s=timed.backward_s + backward_s,
    )


def _positions(shapes: StepShapes) -> int:
    """Padded positions of both sides, to which computing is nearly proportional."""
    return sum(shape.pairs * (shape.longest_source + shape.longest_target) for shape in shapes)


def _page_faults() -> int:
    """Returns how many pages this process has been given so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def _wait_for(group: Group) -> None:
    if group.device.type == "cuda":
        torch.cuda.synchronize(group.device)
