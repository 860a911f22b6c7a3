"""`dragoman plan --simulate`: a file that describes a large cluster comes in, its runs go out."""

from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import AfterValidator, ValidationError, model_validator

from dragoman.checkpoints.frequency import SaveCost, save_interval_s
from dragoman.config import (
    Config,
    Price,
    Section,
    Share,
    SyncSettings,
    Text,
    above,
    between,
    parse_toml,
    problems_of,
    read_toml_text,
)
from dragoman.distributed.ring_bytes import on_the_wire
from dragoman.errors import ConfigError, UserError
from dragoman.forecast.cluster import (
    Failures,
    Stragglers,
    Topology,
    Way,
    network_of,
    runs_with_failures,
    slowest_of,
)
from dragoman.forecast.collectives import Network
from dragoman.forecast.processing import CPU, GPU
from dragoman.forecast.step import Model, Work, forecast_step
from dragoman.forecast.sync_modes import QUALITY_COST, in_a_word
from dragoman.model.size import count_parameters, size_of
from dragoman.plan.assumption import Assumption, parse_link_rate
from dragoman.plan.content import Content
from dragoman.plan.data import Data, data_of
from dragoman.plan.from_assumption import MTU, computing_of
from dragoman.plan.modes import SHOWN, refusal_of
from dragoman.plan.plan import planned_steps
from dragoman.plan.setup import LOCAL_LATENCY_S, LOCAL_RATE

MOST_NODES = 100_000
RUNS = 200
"""Simulated ones, of which the middle nine tenths are the interval."""
STEPS = 2000
"""Simulated ones, for the slowest worker of each."""


def _rate(text: str) -> str:
    try:
        parse_link_rate(text)
    except UserError as error:
        raise ValueError(str(error)) from None
    return text


LinkRate = Annotated[Text, AfterValidator(_rate)]
Count = Annotated[int, between(1, 100_000)]


class ClusterTable(Section):
    sites: Annotated[int, between(1, 1000)] = 1
    """Places with slow links between them."""
    racks: Count = 1
    """Of each site."""
    nodes: Count
    """Of each rack."""
    workers: Annotated[int, between(1, 1024)] = 1
    """Of each node, one a device."""

    @model_validator(mode="after")
    def nodes_are_not_too_many(self) -> Self:
        if (nodes := self.sites * self.racks * self.nodes) > MOST_NODES:
            raise ValueError(
                f"cluster.sites x cluster.racks x cluster.nodes = {nodes:,} nodes, and at most "
                f"{MOST_NODES:,} can be simulated; lower one of them"
            )
        return self


class NetworkTable(Section):
    rack_rate: LinkRate
    """A node's port, as it is sold: 25gbit."""
    rack_latency_us: Annotated[float, between(0, 1_000_000)] = 20.0
    """Of a message between nodes of a rack, with what the backend adds."""
    between_racks_rate: LinkRate = "100gbit"
    """A rack's way to the others, which its nodes share."""
    between_racks_latency_us: Annotated[float, between(0, 1_000_000)] = 40.0
    between_sites_rate: LinkRate = "1gbit"
    """A site's way to the others, which its nodes share."""
    between_sites_latency_us: Annotated[float, between(0, 10_000_000)] = 10_000.0


class ComputingTable(Section):
    tflops: Annotated[float, above(0, 100_000)]
    """FLOP/s of one device, in 10^12."""
    utilization: Annotated[float, between(0.001, 1)] = 0.35
    """Share of it that training reaches."""
    device: Literal["gpu", "cpu"] = "gpu"


class StragglersTable(Section):
    spread: Annotated[float, between(0, 2)] = 0.03
    """Standard deviation of the logarithm of a step's computing, of each worker and step anew."""
    slow_share: Share = 0.0
    """Of the nodes, which are always slow."""
    slow_factor: Annotated[float, between(1, 100)] = 1.0
    """By which they are."""


class FailuresTable(Section):
    hours_between: Annotated[float, above(0, 100_000_000)] = 50_000.0
    """Of one node, in the mean."""
    restart_s: Annotated[float, between(0, 1_000_000)] = 300.0
    """From a failure to the first step after it."""
    save_every_s: Annotated[float, above(0, 10_000_000)] | None = None
    """Work between two checkpoints, of which half is lost in the mean; unset: at the interval that
    loses the least."""


class CostTable(Section):
    node_per_hour: Price = 0.0
    """Price of a node per hour."""


class SimulationFile(Section):
    cluster: ClusterTable
    network: NetworkTable
    computing: ComputingTable
    stragglers: StragglersTable = StragglersTable()
    failures: FailuresTable = FailuresTable()
    cost: CostTable = CostTable()
    seed: Annotated[int, between(0, 2**31)] = 1
    """Determines all draws."""


class Simulated(Content):
    """A run of the recipe on the cluster, in one way to synchronize."""

    mode: str
    refused: str
    quality: str
    bytes_per_step: float
    compute_s: float
    """Of the usual worker."""
    waiting_s: float
    """For the network, and by which communication slows computing down."""
    straggling_s: float
    """For the slowest worker, in the mean."""
    step_s: float
    step_low_s: float
    step_high_s: float
    """With `step_low_s`: where nine of ten steps are."""
    tokens_per_s: float
    efficiency: float
    """Of a node, as a share of what one node alone reaches."""
    failures: float | None
    """Of a run, in the mean; null: the run has no end that is known, or never gets there."""
    hours: float | None
    hours_low: float | None
    hours_high: float | None
    goodput: float | None
    """Share of the hours that is neither lost nor spent on restarts."""
    cost: float | None


class Simulation(Content):
    recipe: str
    nodes: int
    workers: int
    steps: int | None
    currency: str
    save_every_s: float
    note: str
    modes: list[Simulated]

    def text(self) -> str:
        from dragoman.plan.simulation_text import simulation_text  # noqa: PLC0415 (imports this)

        return simulation_text(self)


def read_simulation(path: Path) -> SimulationFile:
    try:
        text = read_toml_text(path)
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: no such file; copy recipes/cluster/simulation.toml and describe your cluster"
        ) from None
    try:
        return SimulationFile.model_validate(parse_toml(text, str(path)))
    except ValidationError as error:
        known = [
            f"{section}.{key}"
            for section, field in SimulationFile.model_fields.items()
            for key in getattr(field.annotation, "model_fields", {})
        ]
        raise ConfigError(f"{path}: {problems_of(error, [*known, 'seed'])}") from error


def simulate_file(config: Config, path: Path) -> Simulation:
    return simulate(config, read_simulation(path))


def simulate(config: Config, given: SimulationFile) -> Simulation:
    """Simulates all modes that the recipe allows, and those of whole hosts as islands."""
    topology = topology_of(given)
    ranks = topology.all_nodes * topology.workers
    data = data_of(config, ranks)
    work = _work(config, given, data, ranks)
    alone = _work(config, given, data, topology.workers)
    network = network_of(topology, LOCAL_RATE, LOCAL_LATENCY_S)
    steps = planned_steps(config, data)
    save_every_s = given.failures.save_every_s or _save_every_s(config, given, data, topology)
    alone_s = _step(config, SyncSettings(), data, alone, given, network.one_host()).step_s
    variants = [*SHOWN, *_of_hosts(topology.workers)]
    if config.sync.mode != "auto":
        own = in_a_word(config.sync)
        variants = [config.sync, *(each for each in variants if in_a_word(each) != own)]
    modes = []
    for settings in variants:
        updates = (settings.accumulate or 1) / (config.sync.accumulate or 1)
        step = _step(config, settings, data, work, given, network, updates)
        modes.append(
            _simulated(config, settings, step, topology, given, steps, save_every_s, alone_s)
        )
    return Simulation(
        recipe=config.name,
        nodes=topology.all_nodes,
        workers=ranks,
        steps=steps,
        currency=config.cost.currency,
        save_every_s=save_every_s,
        note=_note(config, data, ranks),
        modes=modes,
    )


def topology_of(given: SimulationFile) -> Topology:
    """Rates of ports become rates of payload."""

    def way(rate: str, latency_us: float) -> Way:
        return Way(parse_link_rate(rate) / 8 / on_the_wire(1.0, MTU), latency_us * 1e-6)

    cluster, network = given.cluster, given.network
    return Topology(
        cluster.sites,
        cluster.racks,
        cluster.nodes,
        cluster.workers,
        way(network.rack_rate, network.rack_latency_us),
        way(network.between_racks_rate, network.between_racks_latency_us),
        way(network.between_sites_rate, network.between_sites_latency_us),
    )


class _Step(Content):
    bytes_per_step: float
    compute_s: float
    waiting_s: float

    @property
    def step_s(self) -> float:
        return self.compute_s + self.waiting_s


def _work(config: Config, given: SimulationFile, data: Data, ranks: int) -> Work:
    computing = given.computing
    assumption = Assumption(
        text="",
        nodes=ranks,
        flops_per_s=1e12 * computing.tflops,
        utilization=computing.utilization,
        is_cpu=computing.device == "cpu",
    )
    return computing_of(config, assumption, data).work(ranks, "likely")


def _step(
    config: Config,
    settings: SyncSettings,
    data: Data,
    work: Work,
    given: SimulationFile,
    network: Network,
    updates: float = 1.0,
) -> _Step:
    """Returns the seconds of one update of the recipe; `updates` are computed before each sum."""
    parameters = count_parameters(config.model, data.vocabulary)
    model = Model(config.model, data.vocabulary, parameters, config.training.sharding == "full")
    work = work._replace(forward_s=updates * work.forward_s, backward_s=updates * work.backward_s)
    processor = CPU if given.computing.device == "cpu" else GPU
    step = forecast_step(settings, model, work, network, processor)
    return _Step(
        bytes_per_step=step.bytes_per_step / updates,
        compute_s=step.compute_s / updates,
        waiting_s=step.communication_s / updates,
    )


def _of_hosts(workers: int) -> list[SyncSettings]:
    """Returns the modes in which workers of a node are one, where a node has several."""
    if workers == 1:
        return []
    return [each.model_copy(update={"group": "host"}) for each in SHOWN if each.is_local]


def _save_every_s(config: Config, given: SimulationFile, data: Data, topology: Topology) -> float:
    """Returns the interval that loses the least, given what a save and a failure cost."""
    size = size_of(config.model, data.vocabulary, config.optimizer, config.sync)
    in_flight_s = size.checkpoint_bytes / 4e8
    cost = SaveCost(stall_s=0.0, slowdown=0.1, in_flight_s=in_flight_s)
    hours = given.failures.hours_between / topology.all_nodes
    return save_interval_s(cost, hours, config.checkpoints.lost_minutes)


def _simulated(
    config: Config,
    settings: SyncSettings,
    step: _Step,
    topology: Topology,
    given: SimulationFile,
    steps: int | None,
    save_every_s: float,
    alone_s: float,
) -> Simulated:
    # The same draws for all modes, so that they differ by what they do and not by luck.
    random = np.random.default_rng(given.seed)
    nodes, tokens = topology.all_nodes, config.training.tokens_per_update
    stragglers = Stragglers(**given.stragglers.model_dump())
    # All workers agree by a small message in every step, so each step waits for the slowest.
    slowest = slowest_of(stragglers, nodes, topology.workers, STEPS, random)
    taken = step.compute_s * slowest + step.waiting_s
    mean_s = float(taken.mean())
    low_s, high_s = (float(each) for each in np.quantile(taken, [0.05, 0.95]))
    found = Simulated(
        mode=in_a_word(settings),
        refused=refusal_of(config, settings),
        quality=QUALITY_COST[settings.mode],
        bytes_per_step=step.bytes_per_step,
        compute_s=step.compute_s,
        waiting_s=step.waiting_s,
        straggling_s=mean_s - step.step_s,
        step_s=mean_s,
        step_low_s=low_s,
        step_high_s=high_s,
        tokens_per_s=tokens / mean_s,
        efficiency=alone_s / (nodes * mean_s),
        failures=None,
        hours=None,
        hours_low=None,
        hours_high=None,
        goodput=None,
        cost=None,
    )
    if steps is None:
        return found
    failing = Failures(given.failures.hours_between, given.failures.restart_s, save_every_s)
    runs = runs_with_failures(steps * mean_s, nodes, failing, RUNS, random)
    if not np.isfinite(runs.wall_s).all():
        return found
    hours = runs.wall_s / 3600
    low, high = (float(each) for each in np.quantile(hours, [0.05, 0.95]))
    price = nodes * given.cost.node_per_hour
    return found.model_copy(
        update={
            "failures": float(runs.failures.mean()),
            "hours": float(hours.mean()),
            "hours_low": low,
            "hours_high": high,
            "goodput": steps * mean_s / 3600 / float(hours.mean()),
            "cost": price * float(hours.mean()) if price else None,
        }
    )


def _note(config: Config, data: Data, ranks: int) -> str:
    if ranks <= data.micro_batches:
        return ""
    each = config.training.tokens_per_update / ranks
    batches = f"{data.micro_batches} micro-batch{'' if data.micro_batches == 1 else 'es'}"
    return (
        f"An update has {batches}, too few for {ranks:,} workers: smaller "
        f"ones are taken to be set, of {each:,.0f} target tokens a worker. Raise "
        "training.tokens_per_update for larger ones."
    )
