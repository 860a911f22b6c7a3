"""Clusters of thousands of nodes: racks and sites, stragglers, failures. Pure, with NumPy.

The step itself is that of `forecast/step.py`. Here is what only large clusters have: hops of
different kinds, the slowest of very many workers, and nodes that fail while others compute.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dragoman.forecast.collectives import Network

Array = npt.NDArray[np.float64]

MOST_SIMULATED = 2000
"""Failures of a run that are drawn one by one; a run with more is the sum of shorter ones."""
MOST_FAILURES = 200_000
"""Of one simulated run; a run with more does not get on."""


class Way(NamedTuple):
    """One kind of hop; a rate is bytes of payload a second."""

    rate: float
    latency_s: float


class Topology(NamedTuple):
    sites: int
    racks: int
    """Of each site."""
    nodes: int
    """Of each rack."""
    workers: int
    """Of each node."""
    in_rack: Way
    """A node's port."""
    between_racks: Way
    """A rack's way to the others, which its nodes share."""
    between_sites: Way
    """A site's way to the others, which its nodes share."""

    @property
    def all_nodes(self) -> int:
        return self.sites * self.racks * self.nodes


def network_of(topology: Topology, local_rate: float, local_latency_s: float) -> Network:
    """Returns the network of the whole cluster.

    A ring visits nodes rack by rack and site by site, so each way out carries one flow of it: the
    slowest rules. A part passes all hops one after the other, so their latencies add up, and each
    counts by how many there are. In an all-to-all, all nodes of a rack share its way out.
    """
    nodes, racks, sites = topology.all_nodes, topology.sites * topology.racks, topology.sites
    crossing_sites = sites if sites > 1 else 0
    crossing_racks = (racks if racks > 1 else 0) - crossing_sites
    inside = nodes - crossing_racks - crossing_sites
    ways = [
        (inside, topology.in_rack),
        (crossing_racks, topology.between_racks),
        (crossing_sites, topology.between_sites),
    ]
    used = [(count, way) for count, way in ways if count > 0] or [(1, topology.in_rack)]
    hops = sum(count for count, _ in used)
    port = _shared_rate(topology)
    return Network(
        hosts=nodes,
        ranks_on_host=topology.workers,
        hop_rate=min(min(way.rate, topology.in_rack.rate) for _, way in used),
        send_rate=port,
        receive_rate=port,
        latency_s=sum(count * way.latency_s for count, way in used) / hops,
        local_rate=local_rate,
        local_latency_s=local_latency_s,
    )


def _shared_rate(topology: Topology) -> float:
    """Returns what a node can send to all others at once, through the ways that it shares."""
    nodes = topology.all_nodes
    rates = [topology.in_rack.rate]
    in_site = topology.racks * topology.nodes
    for neighbors, way in (
        (topology.nodes, topology.between_racks),
        (in_site, topology.between_sites),
    ):
        if nodes > neighbors:
            leaving = (nodes - neighbors) / max(1, nodes - 1)
            rates.append(way.rate / (neighbors * leaving))
    return min(rates)


class Stragglers(NamedTuple):
    spread: float = 0.0
    """Standard deviation of the logarithm of a step's computing, of each worker and step anew."""
    slow_share: float = 0.0
    """Of the nodes, which are always slow."""
    slow_factor: float = 1.0
    """By which they are."""


def slowest_of(
    stragglers: Stragglers, nodes: int, workers: int, steps: int, random: np.random.Generator
) -> Array:
    """Returns by how many times the slowest worker's computing is above the usual, step by step.

    The largest of n draws has the distribution F^n, so one draw a step is enough.
    """
    from scipy.special import ndtri  # noqa: PLC0415 (0.2 s, of large clusters alone)

    draws = random.random(steps) ** (1.0 / (nodes * workers))
    factors: Array = np.exp(stragglers.spread * ndtri(np.minimum(draws, 1 - 1e-16)))
    is_slow = random.binomial(nodes, stragglers.slow_share) > 0
    return factors * (stragglers.slow_factor if is_slow else 1.0)


class Failures(NamedTuple):
    hours_between: float
    """Of one node, in the mean."""
    restart_s: float
    """From a failure to the first step after it."""
    save_every_s: float
    """Work between two checkpoints."""


class Runs(NamedTuple):
    """Of each simulated run."""

    wall_s: Array
    """Infinite where it does not get on."""
    failures: Array


def runs_with_failures(
    work_s: float, nodes: int, failures: Failures, runs: int, random: np.random.Generator
) -> Runs:
    """Simulates runs of so much work, in which any node that fails stops all.

    What was done since the last checkpoint is lost. Nodes fail independently, at any time.
    """
    between_s = 3600 * failures.hours_between / nodes
    usual = _progress(np.array([between_s]), failures)[0]
    expected = work_s / max(usual, 1e-9)
    if expected > MOST_FAILURES / 4:
        return Runs(np.full(runs, np.inf), np.full(runs, np.inf))
    if (parts := math.ceil(expected / MOST_SIMULATED)) > 1:
        part = runs_with_failures(work_s / parts, nodes, failures, runs, random)
        return Runs(*(_of_parts(each, parts) for each in part))
    wall_s, done_s, count = np.zeros(runs), np.zeros(runs), np.zeros(runs)
    is_open = np.ones(runs, dtype=bool)
    for _ in range(MOST_FAILURES):
        gaps = random.exponential(between_s, runs)
        # Until the next failure; the first attempt starts at once.
        usable = gaps - np.where(count > 0, failures.restart_s, 0.0)
        finishes = is_open & (usable >= work_s - done_s)
        restarts = np.where(count > 0, failures.restart_s, 0.0)
        wall_s = np.where(finishes, wall_s + restarts + work_s - done_s, wall_s)
        goes_on = is_open & ~finishes
        kept = np.floor(np.maximum(usable, 0.0) / failures.save_every_s) * failures.save_every_s
        wall_s, done_s = (
            wall_s + np.where(goes_on, gaps, 0.0),
            done_s + np.where(goes_on, kept, 0.0),
        )
        count += goes_on
        is_open = goes_on
        if not is_open.any():
            break
    wall_s[is_open] = np.inf
    return Runs(wall_s, count)


def _of_parts(values: Array, parts: int) -> Array:
    """Returns sums of so many independent values, whose deviations grow with the root."""
    mean = values.mean()
    total: Array = parts * mean + math.sqrt(parts) * (values - mean)
    return total


def _progress(gap_s: Array, failures: Failures) -> Array:
    """Returns the expected work that is kept between two failures, for a mean gap."""
    rate = 1.0 / gap_s
    # Sum over k of P(gap > restart + k x interval) x interval, a geometric series.
    start = np.exp(-rate * failures.restart_s)
    each = np.exp(-rate * failures.save_every_s)
    kept: Array = failures.save_every_s * start * each / np.maximum(1.0 - each, 1e-12)
    return kept
