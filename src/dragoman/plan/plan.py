"""Makes a plan: a recipe, and a check or an assumption, come in; a `Plan` goes out."""

from collections.abc import Sequence

import dragoman
from dragoman.check.result import CheckResult
from dragoman.config import Config, SyncSettings
from dragoman.distributed.ring_bytes import on_the_wire
from dragoman.errors import UserError
from dragoman.forecast.quantity import Quantity
from dragoman.model.size import activation_bytes, count_parameters, size_of
from dragoman.plan.advice import gains_of, recommendation_of
from dragoman.plan.assumption import Assumption, parse_assumption
from dragoman.plan.content import (
    Figure,
    Input,
    LearningRate,
    LinkPoint,
    Memory,
    Mode,
    NodesPoint,
    Plan,
)
from dragoman.plan.data import Data, data_of
from dragoman.plan.from_assumption import MTU, setup_from_assumption
from dragoman.plan.from_check import setup_from_check
from dragoman.plan.learning_rate import rate_curve
from dragoman.plan.modes import extras, forecast_mode, modes_of, run_of
from dragoman.plan.setup import Setup

USED_SHARE = 0.8
"""Of a device's memory, as `training.micro_batch_tokens = "auto"` gives out."""
LINKS_BITS_PER_S = (
    *(1e7, 3e7, 1e8, 3e8, 1e9, 2.5e9),
    *(5e9, 1e10, 2.5e10, 5e10, 1e11),
)
FEW_NODES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)


def plan_from_check(config: Config, result: CheckResult) -> Plan:
    """Forecasts a run on the hosts that a check has measured."""
    ranks = sum(host.workers for host in result.hosts)
    data = data_of(config, ranks)
    return make_plan(config, setup_from_check(config, result, data), data)


def plan_from_assumption(config: Config, given: str | Assumption) -> Plan:
    """Forecasts a run on a cluster that is described in words."""
    read = parse_assumption(given) if isinstance(given, str) else given
    if read.currency and read.currency != config.cost.currency:
        raise UserError(
            f"--assume: the price is in {read.currency}, and the recipe counts in cost.currency = "
            f"{config.cost.currency!r}; set cost.currency={read.currency}, "
            "or leave the sign out"
        )
    data = data_of(config, read.nodes * read.workers)
    return make_plan(config, setup_from_assumption(config, read, data), data)


def make_plan(config: Config, setup: Setup, data: Data) -> Plan:
    steps = planned_steps(config, data)
    found = modes_of(config, setup, data, steps)
    own_settings, own = found[0]
    best = next(mode for _, mode in found if mode.is_recommended)
    curve = rate_curve(config.schedule, config.model.width, config.training.steps or steps)
    nodes = nodes_of(config, setup, data, steps, own_settings, own)
    advice = recommendation_of(config, setup, own, best, nodes)
    modes = [
        mode.model_copy(update={"is_recommended": mode.name == advice.mode}) for _, mode in found
    ]
    extra = extras(config, setup, data, own.step_s.value, steps or 1)
    budgeted = config.cost
    return Plan(
        dragoman=dragoman.__version__,
        recipe=config.name,
        origin=setup.origin,
        is_measured=own.step_s.is_measured,
        hosts=setup.hosts,
        workers=setup.ranks_on_host,
        parameters=count_parameters(config.model, data.vocabulary),
        tokens_per_update=config.training.tokens_per_update,
        steps=steps,
        currency=budgeted.currency,
        budget=budgeted.budget,
        inputs=_inputs(setup),
        modes=modes,
        evaluation_hours=extra.evaluations * extra.evaluation_s / 3600 if steps else 0.0,
        saving_hours=extra.saves * extra.save_s / 3600 if steps else 0.0,
        nodes=nodes,
        links=links_of(config, setup, data, found) if setup.hosts > 1 else [],
        memory=memory_of(config, setup, data),
        learning_rate=LearningRate(kind=config.schedule.kind, **curve._asdict()),
        gains=gains_of(config, setup, data, steps, own_settings, own),
        recommendation=advice,
    )


def planned_steps(config: Config, data: Data) -> int | None:
    """Returns where training.steps or training.epochs end the run; None: neither is known."""
    ends = [config.training.steps] if config.training.steps else []
    if config.training.epochs and data.steps_per_epoch:
        ends.append(config.training.epochs * data.steps_per_epoch)
    return min(ends) if ends else None


def nodes_of(
    config: Config,
    setup: Setup,
    data: Data,
    steps: int | None,
    settings: SyncSettings,
    own: Mode,
) -> list[NodesPoint]:
    """Returns the recipe's own mode on 1 to twice as many hosts, eight at least."""
    most = max(8, 2 * setup.hosts)
    counts = sorted({*(count for count in FEW_NODES if count <= most), setup.hosts})
    alone_s, points = 0.0, []
    for count in counts:
        there = setup.with_hosts(count)
        found = forecast_mode(config, settings, there, data)
        is_measured = own.step_s.is_measured and count == setup.hosts
        step = found.quantity("step_s", is_measured, own.step_s.basis)
        alone_s = alone_s or step.value
        run = run_of(config, there, data, step, steps)
        ranks = there.ranks
        points.append(
            NodesPoint(
                nodes=count,
                step_s=Figure.of(step),
                tokens_per_s=config.training.tokens_per_update / step.value,
                efficiency=alone_s / (count * step.value),
                hours=run.hours.value if run else None,
                cost=run.cost.value if run and run.cost else None,
                note=""
                if ranks <= setup.computing.micro_batches
                else f"an update has {_micro_batches(setup.computing.micro_batches)}; lower "
                f"training.micro_batch_tokens for {ranks} workers",
            )
        )
    return points


def _micro_batches(number: int) -> str:
    return f"{number:,} micro-batch{'' if number == 1 else 'es'}"


def links_of(
    config: Config, setup: Setup, data: Data, modes: Sequence[tuple[SyncSettings, Mode]]
) -> list[LinkPoint]:
    """Returns all modes on links of 10 Mbit/s to 100 Gbit/s, as ports are sold."""
    points = []
    for bits in LINKS_BITS_PER_S:
        there = setup.with_rate(bits / 8 / on_the_wire(1.0, MTU))
        step_s = {
            mode.name: forecast_mode(config, settings, there, data).step_s
            for settings, mode in modes
            if not mode.refused
        }
        points.append(LinkPoint(bits_per_s=bits, step_s=step_s))
    return points


def memory_of(config: Config, setup: Setup, data: Data) -> Memory:
    """Returns what a worker needs and the largest micro-batch that fits into its device."""
    training, ranks = config.training, setup.ranks
    size = size_of(config.model, data.vocabulary, config.optimizer, config.sync)
    state = float(size.state_bytes)
    if training.sharding == "full":
        state /= ranks
    tokens = training.micro_batch_limit
    activations = float(activation_bytes(config.model, tokens))
    basis, is_measured = "a rough bound of what backward needs", False
    if setup.peak_memory_bytes and setup.peak_memory_bytes.value > state:
        activations, is_measured = setup.peak_memory_bytes.value - state, True
        basis = "the peak of real steps"
    device = setup.memory_bytes.value if setup.memory_bytes else None
    largest = None
    if device is not None:
        room = USED_SHARE * device - state
        largest = max(0, int(room / activations * tokens) // 100 * 100)
    return Memory(
        state_bytes=state,
        activation_bytes=activations,
        micro_batch_tokens=None if training.micro_batch_tokens == "auto" else tokens,
        device_bytes=device,
        largest_micro_batch_tokens=largest,
        is_measured=is_measured,
        basis=basis,
    )


def _inputs(setup: Setup) -> list[Input]:
    computing = setup.computing
    share = computing.work(setup.ranks, "likely")
    step = computing.factor.map(lambda factor: factor * share.seconds)
    found: list[tuple[str, str, Quantity]] = [("computing of a step", "s", step)]
    if setup.hosts > 1:
        found += [
            ("slowest hop of the ring", "bytes/s", setup.hop_rate),
            ("slowest port, sending", "bytes/s", setup.send_rate),
            ("slowest port, receiving", "bytes/s", setup.receive_rate),
            ("latency of a message", "s", setup.latency_s),
        ]
    elif setup.ranks > 1:
        found.append(("rate between workers", "bytes/s", setup.local_rate))
    if setup.ranks > 1 and setup.contention.value:
        found.append(("cores' time for a byte", "s/byte", setup.contention))
    if setup.memory_bytes:
        found.append(("memory of a device", "bytes", setup.memory_bytes))
    return [Input(name=name, unit=unit, figure=Figure.of(each)) for name, unit, each in found]
