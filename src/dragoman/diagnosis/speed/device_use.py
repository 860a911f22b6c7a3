"""How far the devices of a run were used: what several witnesses say, and what explains it."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.hosts import HostSensors, host_of
from dragoman.diagnosis.speed.foreign_load import FULL, MUCH_TAKEN, ProcessorLoad, crowd_in_words
from dragoman.diagnosis.speed.overview import speed_of
from dragoman.telemetry.read.tables import group_column, known

FULLY = 0.85
"""Share of the step spent computing."""
POOR_EFFICIENCY = 0.20
"""Of what the device reaches in large matrix products, while it computes; transformers of this
size reach 35 to 60 %."""
LOW_POWER = 0.5
"""Of the limit: a GPU that computes in earnest draws more."""
AT_THE_LIMIT = 0.95
IDLE_CORES = 0.5
"""CPU runs: with so few cores in use, more threads or workers fit."""
HELD_BACK = 0.7
"""Of the cores that ranks of other hosts use while they compute: a limit holds these back."""
_PARTS_OF_COMPUTING = ("forward", "backward", "optimizer")


@dataclass(frozen=True)
class DeviceUse:
    """Shares, 0 to 1. NaN: not recorded."""

    computing: float
    """Of the step, in the mean over ranks."""
    flops: float
    """Model FLOPs utilization: needed over possible in the same time."""
    driver: float
    power: float
    """Drawn over the limit."""
    cpu: float
    """Of all cores of the hosts."""
    is_gpu: bool
    crowd: str = ""
    """Who else takes how much of which host's processors; empty: nobody so much."""
    held_back: str = ""
    """The host whose ranks use fewer cores than those of others, though it has them."""
    has_small_products: bool = False
    """What they achieve is little, and nothing else than the size of the products explains it."""

    @property
    def efficiency(self) -> float:
        """While it computes."""
        return self.flops / self.computing if self.computing else math.nan

    @property
    def achieves_little(self) -> bool:
        if not math.isnan(self.efficiency):
            return self.efficiency < POOR_EFFICIENCY
        return self.is_gpu and self.computing >= FULLY and self.power < LOW_POWER

    @property
    def has_idle_cores(self) -> bool:
        """While it computes; where it waits, they are idle because of that."""
        return not self.is_gpu and self.computing >= FULLY and self.cpu < IDLE_CORES

    @property
    def is_crowded_out(self) -> bool:
        """Whether others take what computes: on a GPU, programs of the host's processors do not."""
        return bool(self.crowd) and not self.is_gpu

    @property
    def name(self) -> str:
        return "GPUs" if self.is_gpu else "CPUs"


def use_of(
    run: RunFacts, loads: Mapping[str, ProcessorLoad], crowded: Mapping[str, ProcessorLoad]
) -> DeviceUse:
    speed = speed_of(run)
    hosts, devices = run.hosts.values(), devices_of(run)
    computing = math.nan
    if speed and speed.split.step_s and not math.isnan(speed.split.network_s):
        computing = speed.split.busy_s / speed.split.step_s
    use = DeviceUse(
        computing=computing,
        flops=flops_utilization(run),
        driver=_mean([host.mean(gpu) for host in hosts for gpu in gpus_of(host, devices)]) / 100,
        power=_power(hosts, devices),
        cpu=_mean([load.busy for load in loads.values()]),
        is_gpu=any(device.startswith("cuda") for device in devices),
        crowd=crowd_in_words(crowded) if crowded else "",
    )
    if not use.is_gpu and not crowded:
        use = replace(use, held_back=_held_back(run, loads))
    return replace(use, has_small_products=_has_small_products(run, use, loads))


def flops_utilization(run: RunFacts) -> float:
    """Returns what the model needed over what the devices could have done in the time of the usual
    steps."""
    usual = run.step_parts.step[run.step_parts.usual]
    needed = possible = 0.0
    for rank, steps in run.steps_by_rank.items():
        flops = group_column(steps, "counts", "flops")
        is_counted = np.isin(steps["step"], usual) & ~np.isnan(flops)
        for attempt in run.attempts:
            device = attempt.devices.get(rank)
            if device is None or not device.peak_flops:
                continue
            own = is_counted & (steps["attempt"] == attempt.number)
            needed += float(flops[own].sum())
            possible += device.peak_flops * float(steps["step_s"][own].sum())
    return needed / possible if possible else math.nan


def devices_of(run: RunFacts) -> set[str]:
    return {start.device for attempt in run.attempts for start in attempt.starts.values()} | {
        member.device for members in run.record.members.values() for member in members
    }


def gpus_of(host: HostSensors, devices: set[str], value: str = "utilization_percent") -> list[str]:
    """Returns the sensors of the GPUs that ranks compute on, as far as their numbers are the
    driver's; else of all of them."""
    found = host.devices("gpu", value)
    used = [name for name in found if f"cuda:{name}" in devices]
    return [f"gpu/{name}/{value}" for name in used or found]


def _power(hosts: Collection[HostSensors], devices: set[str]) -> float:
    shares = []
    for host in hosts:
        for name in gpus_of(host, devices, "power_w"):
            limit = host.mean(name.replace("power_w", "power_limit_w"))
            shares.append(host.mean(name) / limit if limit else math.nan)
    return _mean(shares)


def _mean(values: Sequence[float]) -> float:
    found = known(values)
    return math.fsum(found) / len(found) if found else math.nan


def _held_back(run: RunFacts, loads: Mapping[str, ProcessorLoad]) -> str:
    """Returns the host whose ranks get much less of their cores than those of the other hosts while
    they compute, though cores are idle: a quota does that. Empty: there is none."""
    used = {
        host: load.own * load.cores / computing
        for host, load in loads.items()
        if (computing := _computing_of(run, host)) > 0 and load.own > 0
    }
    if len(used) < 2:
        return ""
    least = min(used, key=lambda host: used[host])
    others = [cores for host, cores in used.items() if host != least]
    load, is_less = loads[least], used[least] < HELD_BACK * min(others)
    has_cores = load.busy < FULL and load.foreign + load.stolen < MUCH_TAKEN
    return least if is_less and has_cores else ""


def _computing_of(run: RunFacts, host: str) -> float:
    """Returns the share of their steps in which the ranks of a host compute, all added up."""
    total = 0.0
    for rank, steps in run.steps_by_rank.items():
        own = [a.number for a in run.attempts if host_of(a, rank) == host]
        rows = np.isin(steps["attempt"], own)
        parts = (group_column(steps, "parts_s", part)[rows] for part in _PARTS_OF_COMPUTING)
        step_s = float(steps["step_s"][rows].sum())
        total += sum(float(np.nansum(part)) for part in parts) / step_s if step_s else 0.0
    return total


def _has_small_products(run: RunFacts, use: DeviceUse, loads: Mapping[str, ProcessorLoad]) -> bool:
    """Returns whether it is the size of matrix products that lets devices achieve little: not one
    of the other reasons that were recorded."""
    if not use.achieves_little or use.power >= AT_THE_LIMIT:
        return False
    if use.is_gpu or use.crowd or use.held_back:
        return use.is_gpu and not use.crowd
    # Ranks that share processors each get a part only of what was measured when they began.
    shares_cores = any(attempt.ranks > len(attempt.host_names) for attempt in run.attempts)
    has_cores = bool(loads) and all(load.own >= IDLE_CORES for load in loads.values())
    return has_cores and not shares_cores
