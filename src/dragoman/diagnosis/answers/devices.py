"""Were the GPUs (or CPUs) fully used?

Three witnesses, the most reliable first. The share of a step in which a device computes is timed by
the ranks themselves. Model FLOPs utilization counts what the model needed against what the device
can do. Power shows how hard it works. The driver's utilization only says that some kernel was
there, and a collective that waits for other hosts is a kernel: a device that waits shows 100 %.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from dragoman.diagnosis.findings import Confidence, Figure, Finding, recorded, unknown
from dragoman.diagnosis.phrasing import listed, percent
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.hosts import HostSensors
from dragoman.diagnosis.run.timeline import why_no_common_step
from dragoman.diagnosis.speed.bottleneck import FEW_STEPS, Shares, shares_of
from dragoman.telemetry.read.tables import group_column, known

FULLY = 0.85
"""Share of the step spent computing."""
MOSTLY_WAITING = 0.5
POOR_EFFICIENCY = 0.20
"""Of what the device reaches in large matrix products, while it computes; transformers of this
size reach 35 to 60 %."""
GOOD_EFFICIENCY = 0.35
LOW_POWER = 0.5
"""Of the limit: a GPU that computes in earnest draws more."""
AT_THE_LIMIT = 0.95
LOOKS_BUSY = 0.80
MORE_THAN_COMPUTING = 0.15
"""A driver's utilization that is high, and so much more than computing, needs an explanation."""
MUCH_FOREIGN = 0.15
WORTH_NAMING = 0.01
REST_SHARE = 0.05
"""A message and some lines of Python take a percent or two: more is worth a word."""
WORTH_ADVICE = 0.05
"""Of the step, for the largest waiting."""
IDLE_CORES = 0.5
"""CPU runs: with so few cores in use, more threads or workers fit."""


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
    foreign_cpu: float
    """Of these, what programs take that are not of this run."""
    is_gpu: bool

    @property
    def efficiency(self) -> float:
        """While it computes."""
        return self.flops / self.computing if self.computing else math.nan


def answer(run: RunFacts) -> Finding:
    steps = run.step_parts
    if not len(steps):
        return unknown(why_no_common_step(run.steps))
    rows = np.flatnonzero(steps.usual)
    split = steps.mean(rows)
    shares = shares_of(split)
    hosts = run.hosts.values()
    devices = {start.device for attempt in run.attempts for start in attempt.starts.values()} | {
        member.device for members in run.record.members.values() for member in members
    }
    driver = [host.mean(gpu) for host in hosts for gpu in _gpus(host, devices)]
    use = DeviceUse(
        computing=math.nan if math.isnan(split.network_s) else split.busy_s / split.step_s,
        flops=flops_utilization(run),
        driver=_mean(driver) / 100,
        power=_power(hosts, devices),
        cpu=_mean([host.mean("cpu/percent") for host in hosts]) / 100,
        foreign_cpu=_mean([_foreign_cpu(host) for host in hosts]),
        is_gpu=any(device.startswith("cuda") for device in devices),
    )
    figures = recorded(*_figures(use), *_host_figures(hosts, devices))
    verdict = verdict_of(use)
    if verdict is None:
        return unknown(
            "how long the devices waited inside forward and backward was not recorded, and neither "
            "was what they can do at most",
            figures,
        )
    return Finding(
        verdict=verdict,
        confidence=_confidence(use, len(rows), bool(steps.missing_ranks)),
        sentence=answer_in_words(use, shares),
        evidence=figures,
        advice=_advice(use, verdict, shares),
    )


def flops_utilization(run: RunFacts) -> float:
    """Returns what the model needed over what the devices could have done in the steps' time."""
    needed = possible = 0.0
    for rank, steps in run.steps_by_rank.items():
        flops = group_column(steps, "counts", "flops")
        for attempt in run.attempts:
            device = attempt.devices.get(rank)
            if device is None or not device.peak_flops:
                continue
            own = (steps["attempt"] == attempt.number) & ~np.isnan(flops)
            own[np.flatnonzero(own)[:1]] = False  # the first step finds memory and kernels
            needed += float(flops[own].sum())
            possible += device.peak_flops * float(steps["step_s"][own].sum())
    return needed / possible if possible else math.nan


def _gpus(host: HostSensors, devices: set[str], value: str = "utilization_percent") -> list[str]:
    """Returns the sensors of the GPUs that ranks compute on, as far as their numbers are the
    driver's; else of all of them."""
    found = host.devices("gpu", value)
    used = [name for name in found if f"cuda:{name}" in devices]
    return [f"gpu/{name}/{value}" for name in used or found]


def _power(hosts: Collection[HostSensors], devices: set[str]) -> float:
    shares = []
    for host in hosts:
        for name in _gpus(host, devices, "power_w"):
            limit = host.mean(name.replace("power_w", "power_limit_w"))
            shares.append(host.mean(name) / limit if limit else math.nan)
    return _mean(shares)


def _foreign_cpu(host: HostSensors) -> float:
    """Returns the share of a host's cores that programs take which are not ranks of this run."""
    own = [host.mean(f"rank/{rank}/cpu_percent") for rank in host.devices("rank", "cpu_percent")]
    if not host.cores or not own:
        return math.nan
    return max(0.0, host.mean("cpu/percent") - math.fsum(own) / host.cores) / 100


def _mean(values: Sequence[float]) -> float:
    found = known(values)
    return math.fsum(found) / len(found) if found else math.nan


def verdict_of(use: DeviceUse) -> str | None:
    """Returns None where nothing that was recorded decides it."""
    if math.isnan(use.computing):
        if math.isnan(use.flops):
            return None
        if use.flops >= GOOD_EFFICIENCY:
            return "fully used"
        return "partly used" if use.flops >= POOR_EFFICIENCY else "mostly waiting"
    if use.computing < MOSTLY_WAITING:
        return "mostly waiting"
    if use.computing < FULLY or use.efficiency < POOR_EFFICIENCY:
        return "partly used"
    if math.isnan(use.flops) and use.is_gpu and use.power < LOW_POWER:
        return "partly used"
    return "partly used" if not use.is_gpu and use.cpu < IDLE_CORES else "fully used"


def _confidence(use: DeviceUse, steps: int, lacks_ranks: bool) -> Confidence:
    if steps < FEW_STEPS or math.isnan(use.computing):
        return "low"
    witnesses = [use.flops, use.power] if use.is_gpu else [use.flops, use.cpu]
    is_backed = any(not math.isnan(witness) for witness in witnesses)
    return "high" if is_backed and not lacks_ranks else "medium"


def answer_in_words(use: DeviceUse, shares: Shares) -> str:
    sentences = []
    if not math.isnan(use.computing):
        waits = [
            f"{percent(share)} waiting for {what}"
            for what, share in _waits(shares).items()
            if share >= WORTH_NAMING
        ]
        if shares.rest >= REST_SHARE:
            waits.append(f"{percent(shares.rest)} on what is not timed separately")
        also = f"; the rank that waits longest spends {listed(waits)}" if waits else ""
        sentences.append(
            f"On average over the ranks, the {'GPUs' if use.is_gpu else 'CPUs'} compute during "
            f"{percent(use.computing)} of a step{also}."
        )
    if not math.isnan(use.flops):
        of_it = ""
        if not math.isnan(use.efficiency):
            of_it = f", {percent(use.efficiency)} while they compute"
        sentences.append(
            f"Model FLOPs utilization is {percent(use.flops)} of what they reach in large matrix "
            f"products{of_it}."
        )
    return " ".join([*sentences, *_sensors_in_words(use, shares)])


def _waits(shares: Shares) -> dict[str, float]:
    """Returns the share of each thing that a step waits for, but for those not recorded."""
    found = {
        "the network": shares.network,
        "the slowest rank": shares.straggling,
        "data": shares.data,
        "a checkpoint's copy": shares.checkpoint,
    }
    return {what: share for what, share in found.items() if not math.isnan(share)}


def _sensors_in_words(use: DeviceUse, shares: Shares) -> list[str]:
    found = []
    in_collectives = shares.network + shares.straggling
    looks_busier = use.driver - use.computing >= MORE_THAN_COMPUTING
    if use.driver >= LOOKS_BUSY and looks_busier and in_collectives >= MORE_THAN_COMPUTING:
        found.append(
            f"The driver shows {percent(use.driver)} utilization although they wait: a collective "
            "that waits for other nodes is a kernel that spins, and counts as busy."
        )
    elif not math.isnan(use.driver):
        found.append(f"The driver shows {percent(use.driver)} utilization.")
    if use.power >= AT_THE_LIMIT:
        found.append(f"They run at their power limit ({percent(use.power)}), which bounds them.")
    elif not math.isnan(use.power):
        found.append(f"They draw {percent(use.power)} of their power limit.")
    if not math.isnan(use.cpu) and not use.is_gpu:
        others = ""
        if use.foreign_cpu >= MUCH_FOREIGN:
            others = f", {percent(use.foreign_cpu)} of it with programs other than this run"
        found.append(f"The processors of the hosts are {percent(use.cpu)} busy{others}.")
    return found


def _advice(use: DeviceUse, verdict: str, shares: Shares) -> str:
    if verdict == "fully used":
        if use.power >= AT_THE_LIMIT:
            return "A higher power limit, where cooling and contract allow it, would speed them up."
        return ""
    waits = _waits(shares)
    largest = max(waits, key=lambda what: waits[what])
    if use.computing < FULLY and waits[largest] >= WORTH_ADVICE:
        return f"Most of the waiting is for {largest}: see the answer about the network."
    if use.efficiency < POOR_EFFICIENCY or (use.is_gpu and use.power < LOW_POWER):
        return (
            "They are never idle but achieve little: the matrix products are too small. Raise "
            "training.micro_batch_tokens as far as memory allows, or use training.precision bf16."
        )
    if not use.is_gpu and use.cpu < IDLE_CORES:
        return "Cores are idle: start more workers, or let each use more threads."
    return ""


def _figures(use: DeviceUse) -> list[Figure]:
    named = [
        ("computing share", use.computing, "of the step, mean over ranks"),
        ("model FLOPs utilisation", use.flops, "of what large matrix products reach"),
        ("efficiency while computing", use.efficiency, ""),
        ("driver's utilisation", use.driver, "that some kernel was there, be it one that waits"),
        ("power of its limit", use.power, ""),
        ("processor", use.cpu, "of all cores of the hosts"),
        ("processor, other programs", use.foreign_cpu, "of all cores of the hosts"),
    ]
    return [Figure(name, value, "share", note=note) for name, value, note in named]


def _host_figures(hosts: Collection[HostSensors], devices: set[str]) -> list[Figure]:
    found = []
    for host in hosts:
        for name in _gpus(host, devices):
            gpu = f"{host.host} {' '.join(name.split('/')[:2])}"
            power_w = host.mean(name.replace("utilization_percent", "power_w"))
            found += [
                Figure(f"{gpu}, driver's utilisation", host.mean(name) / 100, "share"),
                Figure(f"{gpu}, power", power_w, "W"),
            ]
        steal = host.mean("cpu/steal_percent")
        note = f"{steal:.0f} % taken by other machines on the same hardware" if steal >= 1 else ""
        cpu = host.mean("cpu/percent") / 100
        found.append(Figure(f"{host.host}, processor", cpu, "share", note=note))
    return found
