"""What the sensors of a host show: means over the time since the reading before, as they read it.

A level is given to each phase of a step; its integral over time is a broken line, and a reading is
the difference between two of its points. So a GPU that spins in a collective shows 100 % there,
and draws less power than one that computes.
"""

import numpy as np

from dragoman.config import Config
from scenarios.pace import ETHERNET_BYTES, LOOPBACK_RATE, Pace, hop_rates
from scenarios.world import Floats, World

INTERFACE, LOOPBACK = "eth0", "lo"
IDLE_W, SPINNING_SHARE = 55.0, 0.42
EVALUATING_SHARE = 0.7
"""Of a device, while it searches for translations."""
CHATTER = 2e3
"""Bytes a second: ssh, heartbeats, records on their way home."""
PEAK_WINDOW_S = 0.1


def reading_times(world: World, config: Config, pace: Pace, chance: np.random.Generator) -> Floats:
    every_s = config.telemetry.sensors_every_s
    if not (world.recorded.sensors and every_s):
        return np.empty(0)
    times = np.arange(every_s, pace.ends_s, every_s)
    return times + chance.uniform(0, 0.01, len(times))


def readings_of(
    world: World, host: int, pace: Pace, times: Floats, before_s: float, chance: np.random.Generator
) -> dict[str, Floats]:
    """Name -> a value at each of the times. `before_s`: how long the run had lasted before, for
    counters that only count up."""
    machines = world.machines
    ranks = [rank for rank in range(machines.ranks) if machines.host_of(rank) == host]
    # Before the first step it is the first, after the last the last.
    places = np.clip(np.searchsorted(pace.over, times), 0, len(pace.steps) - 1)
    steps_at = pace.steps[places] if len(pace.steps) else np.zeros(len(times), dtype=np.int64)
    foreign, steal, quota = (
        np.broadcast_to(course(steps_at, host), times.shape)
        for course in (machines.foreign_cpu_percent, machines.steal_percent, machines.quota_cores)
    )
    left = machines.cores * (1 - (foreign + steal) / 100)
    cores = np.where(quota > 0, np.minimum(quota, left), left)
    on_cpu = machines.device == "cpu"
    values: dict[str, Floats] = {}
    own = np.zeros_like(times)
    for rank in ranks:
        busy = _means(pace, rank, times, (0.3, 1.0, 0.12, 0.9, EVALUATING_SHARE))
        used = busy * (100 * cores / len(ranks) if on_cpu else 180.0)
        values[f"rank/{rank}/cpu_percent"] = used
        values[f"rank/{rank}/resident_bytes"] = np.full_like(times, 6.1e9)
        own += used / machines.cores
    total = np.clip(own + foreign + steal + chance.normal(1.5, 0.4, len(times)), 0, 100)
    values |= {
        "cpu/percent": total,
        "cpu/iowait_percent": np.abs(chance.normal(0, 0.2, len(times))),
        "cpu/steal_percent": np.abs(steal + chance.normal(0, 0.1, len(times))),
        "cpu/load": total / 100 * machines.cores,
        "memory/total_bytes": np.full_like(times, 128e9),
        "memory/used_bytes": np.full_like(times, 31e9),
        "memory/available_bytes": np.full_like(times, 97e9),
        "memory/swap_used_bytes": np.zeros_like(times),
        "disk/written_bytes_total": 4e9 + 3e5 * (before_s + times),
        "disk/run_free_bytes": np.full_like(times, 400e9),
    }
    values |= _network(world, pace, times, before_s)
    if world.recorded.peaks:
        values |= _peaks(world, host, pace, times, chance)
    if not on_cpu:
        for device, rank in enumerate(ranks):
            values |= _gpu(world, pace, device, rank, times, chance)
    return values


def about_of(world: World) -> dict[str, str]:
    """Device -> what it says of itself."""
    about = {
        f"network/{INTERFACE}": f"{world.link.nominal_mbit_s} Mbit/s",
        f"network/{LOOPBACK}": "speed not known",
    }
    if world.machines.device == "cuda":
        about |= {f"gpu/{n}": world.machines.name for n in range(world.machines.ranks_per_host)}
    return about


def announced_rates(world: World) -> dict[str, float]:
    """Returns bytes a second by interface, as the ports announce them."""
    return {INTERFACE: world.link.nominal_mbit_s * 1e6 / 8} if world.link.nominal_mbit_s else {}


def _gpu(
    world: World,
    pace: Pace,
    device: int,
    rank: int,
    times: Floats,
    chance: np.random.Generator,
) -> dict[str, Floats]:
    machines = world.machines
    spinning = SPINNING_SHARE * machines.power_limit_w
    computing = machines.power_computing_w
    evaluating = IDLE_W + EVALUATING_SHARE * (computing - IDLE_W)
    utilization = _means(pace, rank, times, (0.03, 1.0, 1.0, 0.97, EVALUATING_SHARE))
    power = _means(pace, rank, times, (IDLE_W, computing, spinning, 0.8 * computing, evaluating))
    values = {
        "utilization_percent": np.round(100 * utilization),
        "memory_utilization_percent": np.round(45 * utilization),
        "memory_used_bytes": np.full_like(times, world.work.memory_share * machines.memory_bytes),
        "memory_total_bytes": np.full_like(times, machines.memory_bytes),
        "power_w": np.minimum(
            np.maximum(power, IDLE_W) + chance.normal(0, 1.5, len(times)), machines.power_limit_w
        ),
        "power_limit_w": np.full_like(times, machines.power_limit_w),
        "sm_clock_mhz": np.full_like(times, machines.clock_mhz),
        "temperature_c": np.full_like(times, 61.0),
    }
    return {f"gpu/{device}/{name}": value for name, value in values.items()}


def _network(world: World, pace: Pace, times: Floats, before_s: float) -> dict[str, Floats]:
    passed = np.zeros_like(times)
    if _is_counted(world, pace):
        # All bytes of a step pass while the network works on it.
        sums = np.concatenate([[0.0], np.cumsum(pace.sent_bytes)])
        moments = np.stack([_passing_since(pace), pace.arrived], axis=1).ravel()
        passed = np.interp(times, moments, np.stack([sums[:-1], sums[1:]], axis=1).ravel())
        # Of attempts before this one, as many bytes as would make a counter go on.
        passed = passed + pace.sent_bytes.mean() / pace.step_s.mean() * before_s
    chatter = CHATTER * (before_s + times)
    totals = dict.fromkeys((LOOPBACK, INTERFACE), chatter)
    totals[_interface_between_ranks(world)] = passed + chatter
    values: dict[str, Floats] = {}
    for interface, total in totals.items():
        counted = np.round(8e9 + total)
        for direction in ("sent", "received"):
            name = f"network/{interface}/{direction}"
            values[f"{name}_bytes_total"] = counted
            values[f"{name}_packets_total"] = np.round(counted / ETHERNET_BYTES)
            values[f"{name}_errors_total"] = np.zeros_like(times)
            values[f"{name}_drops_total"] = np.zeros_like(times)
    segments = sum(totals.values()) / ETHERNET_BYTES
    values["tcp/sent_segments_total"] = np.round(segments)
    values["tcp/retransmitted_segments_total"] = np.round(segments * world.link.retransmitted_share)
    return values


def _peaks(
    world: World, host: int, pace: Pace, times: Floats, chance: np.random.Generator
) -> dict[str, Floats]:
    """The highest rates over a tenth of a second since the reading before.

    A hop that sets the ring's pace is full all the time: both of its ends see its rate, and hardly
    more. On any other hop a segment passes as fast as the hop can, as soon as it is there, and then
    nothing until the next one has come through the slow hop."""
    ring = _interface_between_ranks(world)
    quiet = 3 * CHATTER * np.exp(chance.normal(0, 0.3, len(times)))
    values = {
        f"network/{interface}/{direction}_peak_bytes_per_s": quiet
        for interface in (LOOPBACK, INTERFACE)
        for direction in ("sent", "received")
    }
    if not _is_counted(world, pace):
        return values
    if ring == LOOPBACK:
        hops = np.full((1, len(pace.steps)), LOOPBACK_RATE)
    else:
        hops = hop_rates(world, pace.steps)
    slowest = hops.min(axis=0)
    link = world.link
    segment = pace.sent_bytes / (link.messages * link.segments * world.machines.ranks)
    begun = _passing_since(pace)
    per_window = np.maximum(1.0, np.floor(PEAK_WINDOW_S / pace.step_s.mean(axis=0)))
    most = pace.sent_bytes * per_window / PEAK_WINDOW_S
    first = np.searchsorted(pace.arrived, np.concatenate([[0.0], times[:-1]]))
    behind = np.searchsorted(begun, times)
    for direction, hop in (("sent", hops[host]), ("received", hops[host - 1])):
        bursts = np.minimum(hop, slowest + segment / PEAK_WINDOW_S)
        level = np.minimum(np.where(hop <= 1.02 * slowest, slowest, bursts), most)
        noise = np.exp(chance.normal(0.01, 0.01, len(times)))
        highest = np.array(
            [level[a:b].max() if b > a else 0.0 for a, b in zip(first, behind, strict=True)]
        )
        name = f"network/{ring}/{direction}_peak_bytes_per_s"
        values[name] = np.maximum(quiet, highest * noise)
    return values


def _is_counted(world: World, pace: Pace) -> bool:
    """Whether the gradients pass an interface."""
    passes = len(pace.steps) > 0 and world.machines.ranks > 1
    return passes and world.link.shows_on_interfaces


def _passing_since(pace: Pace) -> Floats:
    """When the first bytes of each step are on their way."""
    since: Floats = np.maximum(pace.begin.min(axis=0), pace.arrived - pace.network_s)
    return since


def _interface_between_ranks(world: World) -> str:
    return INTERFACE if len(world.machines.hosts) > 1 else LOOPBACK


def _means(pace: Pace, rank: int, times: Floats, levels: tuple[float, ...]) -> Floats:
    """`levels`: waiting for data, computing, communicating, the rest of a step, between steps.
    Before the first step and after the last: nothing."""
    if not len(pace.steps):
        return np.zeros_like(times)
    parts = {name: values[rank] for name, values in pace.parts.items()}
    phases = [
        parts["data"],
        parts["forward"] + parts["backward"],
        parts.get("communication", np.zeros(len(pace.steps))) + parts["agreement"],
        parts["checkpoint"] + parts["optimizer"] + parts["rest"],
    ]
    begin, end = pace.begin[rank], pace.end[rank]
    after = np.append(begin[1:], end[-1]) - end
    spans = np.stack([*phases, np.maximum(0.0, after)], axis=1).ravel()
    integral = np.cumsum(spans * np.tile(levels, len(pace.steps)))
    moments = np.concatenate([[begin[0]], begin[0] + np.cumsum(spans)])
    at = np.interp(times, moments, np.concatenate([[0.0], integral]))
    means: Floats = np.diff(at, prepend=0.0) / np.diff(times, prepend=0.0)
    return means
