"""Were the GPUs (or CPUs) fully used?

Three witnesses, the most reliable first. The share of a step in which a device computes is timed by
the ranks themselves. Model FLOPs utilisation counts what the model needed against what the device
can do. Power tells how hard it works. The driver's utilisation only says that some kernel was
there, and a collective that waits for other nodes is a kernel: a device that waits shows 100 %.
"""

import math
from collections.abc import Collection, Sequence

import numpy as np

from dragoman.diagnosis.findings import Confidence, Figure, Finding, unknown
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.hosts import HostSensors
from dragoman.diagnosis.run.timeline import why_no_common_step
from dragoman.diagnosis.speed.bottleneck import shares_of
from dragoman.diagnosis.speed.utilization import Use, advice_on, answer_in_words, verdict_of
from dragoman.telemetry.read.rows import group_column

KEY = "devices"
QUESTION = "Were the GPUs (or CPUs) fully used?"

FEW_STEPS = 20


def answer(run: RunFacts) -> Finding:
    anatomy = run.step_parts
    if not len(anatomy):
        return unknown(KEY, QUESTION, why_no_common_step(run.steps))
    split = anatomy.mean(np.flatnonzero(anatomy.usual))
    sensors = run.hosts
    devices = {start.device for attempt in run.attempts for start in attempt.starts.values()} | {
        member.device for members in run.record.members.values() for member in members
    }
    use = Use(
        computing=math.nan if math.isnan(split.network_s) else split.busy_s / split.step_s,
        flops=flops_utilization(run),
        driver=_over_gpus(sensors.values(), devices, "utilization_percent") / 100,
        power=_power(sensors.values(), devices),
        cpu=_mean([host.mean("cpu/percent") for host in sensors.values()]) / 100,
        foreign_cpu=_mean([_foreign_cpu(host) for host in sensors.values()]),
        is_gpu=any(device.startswith("cuda") for device in devices),
    )
    figures = _figures(use, sensors.values(), devices)
    verdict = verdict_of(use)
    if verdict is None:
        return unknown(
            KEY,
            QUESTION,
            "how long the devices waited inside forward and backward was not recorded, and neither "
            "was what they can do at most",
            figures,
        )
    return Finding(
        key=KEY,
        question=QUESTION,
        verdict=verdict,
        confidence=_confidence(use, int(anatomy.usual.sum()), bool(anatomy.missing_ranks)),
        sentence=answer_in_words(use, shares_of(split)),
        evidence=figures,
        advice=advice_on(use, verdict, shares_of(split)),
    )


def flops_utilization(run: RunFacts) -> float:
    """What the model needed over what the devices could have done in the steps' time."""
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


def _gpu_names(host: HostSensors, devices: set[str], value: str) -> list[str]:
    """GPUs that ranks compute on, as far as their numbers are the driver's; else all of them."""
    found = host.devices("gpu", value)
    used = [name for name in found if f"cuda:{name}" in devices]
    return [f"gpu/{name}/{value}" for name in used or found]


def _over_gpus(hosts: Collection[HostSensors], devices: set[str], value: str) -> float:
    return _mean([host.mean(name) for host in hosts for name in _gpu_names(host, devices, value)])


def _power(hosts: Collection[HostSensors], devices: set[str]) -> float:
    shares = []
    for host in hosts:
        for name in _gpu_names(host, devices, "power_w"):
            limit = host.mean(name.replace("power_w", "power_limit_w"))
            shares.append(host.mean(name) / limit if limit else math.nan)
    return _mean(shares)


def _foreign_cpu(host: HostSensors) -> float:
    """Share of a host's cores that programs take which are not ranks of this run."""
    own = [host.mean(f"rank/{rank}/cpu_percent") for rank in host.devices("rank", "cpu_percent")]
    if not host.cores or not own:
        return math.nan
    return max(0.0, host.mean("cpu/percent") - math.fsum(own) / host.cores) / 100


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan


def _confidence(use: Use, steps: int, lacks_ranks: bool) -> Confidence:
    if steps < FEW_STEPS or math.isnan(use.computing):
        return "low"
    witnesses = [use.flops, use.power] if use.is_gpu else [use.flops, use.cpu]
    is_backed = any(not math.isnan(witness) for witness in witnesses)
    return "high" if is_backed and not lacks_ranks else "medium"


def _figures(use: Use, hosts: Collection[HostSensors], devices: set[str]) -> list[Figure]:
    named = [
        ("computing share", use.computing, "of the step, mean over ranks"),
        ("model FLOPs utilisation", use.flops, "of what large matrix products reach"),
        ("efficiency while computing", use.efficiency, ""),
        ("driver's utilisation", use.driver, "that some kernel was there, be it one that waits"),
        ("power of its limit", use.power, ""),
        ("processor", use.cpu, "of all cores of the hosts"),
        ("processor, other programs", use.foreign_cpu, "of all cores of the hosts"),
    ]
    found = [
        Figure(name, value, "share", note=note)
        for name, value, note in named
        if not math.isnan(value)
    ]
    for host in hosts:
        for name in _gpu_names(host, devices, "utilization_percent"):
            value, power = host.mean(name), name.replace("utilization_percent", "power_w")
            gpu = f"{host.host} {name.split('/')[0]} {name.split('/')[1]}"
            found.append(Figure(f"{gpu}, driver's utilisation", value / 100, "share"))
            if not math.isnan(host.mean(power)):
                found.append(Figure(f"{gpu}, power", host.mean(power), "W"))
        if not math.isnan(host.mean("cpu/percent")):
            steal = host.mean("cpu/steal_percent")
            note = (
                f"{steal:.0f} % taken by other machines on the same hardware" if steal >= 1 else ""
            )
            found.append(
                Figure(
                    f"{host.host}, processor", host.mean("cpu/percent") / 100, "share", note=note
                )
            )
    return [figure for figure in found if figure.value is not None and not _is_nan(figure.value)]


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
