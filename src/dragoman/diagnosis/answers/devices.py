"""Were the GPUs (or CPUs) fully used?

Three witnesses, the most reliable first. The share of a step in which a device computes is timed by
the ranks themselves. Model FLOPs utilization counts what the model needed against what the device
can do. Power shows how hard it works. The driver's utilization only says that some kernel was
there, and a collective that waits for other hosts is a kernel: a device that waits shows 100 %.

A processor that computes all the time may still achieve little because others use it too. That is
looked for first: small batches are blamed only where nothing else explains it.
"""

import math
from collections.abc import Mapping

from dragoman.diagnosis.answers.memory import device_peaks
from dragoman.diagnosis.commands import setting_line
from dragoman.diagnosis.findings import Advice, Confidence, Figure, Finding, recorded, unknown
from dragoman.diagnosis.phrasing import listed, percent
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.timeline import why_no_common_step
from dragoman.diagnosis.speed import advice
from dragoman.diagnosis.speed.bottleneck import (
    BOUND_SHARE,
    FEW_STEPS,
    NOBODY,
    Late,
    Shares,
    candidates,
)
from dragoman.diagnosis.speed.causes import WAITED_FOR
from dragoman.diagnosis.speed.device_use import (
    AT_THE_LIMIT,
    FULLY,
    LOW_POWER,
    POOR_EFFICIENCY,
    DeviceUse,
    devices_of,
    gpus_of,
    use_of,
)
from dragoman.diagnosis.speed.foreign_load import ProcessorLoad, crowded_hosts, loads_of
from dragoman.diagnosis.speed.overview import speed_of
from dragoman.telemetry.read.tables import known

MOSTLY_WAITING = 0.5
WAITING = ("network-bound", "latency-bound", "straggler", "input-bound")
"""Bottlenecks for which some devices wait, even where in the mean most of them compute."""
GOOD_EFFICIENCY = 0.35
LOOKS_BUSY = 0.80
MORE_THAN_COMPUTING = 0.15
"""A driver's utilization that is high, and so much more than computing, needs an explanation."""
WORTH_NAMING = 0.01
REST_SHARE = 0.05
"""A message and some lines of Python take a percent or two: more is worth a word."""
MEMORY_TO_FILL = 0.8
"""Of a device's memory: what larger micro-batches may come to."""
WORTH_ENLARGING = 1.3
"""Times the tokens of a micro-batch."""


def answer(run: RunFacts) -> Finding:
    speed = speed_of(run)
    if speed is None:
        return unknown(why_no_common_step(run.steps))
    loads, crowded = loads_of(run), crowded_hosts(run)
    use = use_of(run, loads, crowded)
    figures = recorded(*_figures(use), *_host_figures(run, loads))
    verdict = verdict_of(use)
    late = speed.bottleneck.late if speed.bottleneck else NOBODY
    if verdict == "fully used" and speed.bottleneck and speed.bottleneck.verdict in WAITING:
        verdict = "partly used"
    if verdict is None:
        return unknown(
            "how long the devices waited inside forward and backward was not recorded, and neither "
            "was what they can do at most",
            figures,
        )
    return Finding(
        verdict=verdict,
        confidence=_confidence(use, len(speed.rows), bool(run.step_parts.missing_ranks)),
        sentence=answer_in_words(use, speed.shares, late),
        evidence=figures,
        advice=_advice(run, use, verdict, crowded),
        plain=_plain(use, verdict, speed.shares, late),
    )


def verdict_of(use: DeviceUse) -> str | None:
    """Returns None where nothing that was recorded decides it."""
    if math.isnan(use.computing):
        if math.isnan(use.flops):
            return None
        if use.flops >= GOOD_EFFICIENCY:
            return "fully used"
        return "partly used"  # for whom or what it waits, and how long, is not known
    if use.computing < MOSTLY_WAITING:
        return "mostly waiting"
    if use.computing < FULLY or use.efficiency < POOR_EFFICIENCY or use.is_crowded_out:
        return "partly used"
    if math.isnan(use.flops) and use.is_gpu and use.power < LOW_POWER:
        return "partly used"
    return "partly used" if use.has_idle_cores or use.held_back else "fully used"


def _confidence(use: DeviceUse, steps: int, lacks_ranks: bool) -> Confidence:
    if steps < FEW_STEPS or math.isnan(use.computing):
        return "low"
    witnesses = [use.flops, use.power] if use.is_gpu else [use.flops, use.cpu]
    is_backed = any(not math.isnan(witness) for witness in witnesses)
    return "high" if is_backed and not lacks_ranks else "medium"


def _plain(use: DeviceUse, verdict: str, shares: Shares, late: Late) -> str:
    if verdict == "fully used":
        return f"Yes: in the steps, the {use.name} computed almost all of the time."
    no = "No" if verdict == "mostly waiting" else "Partly"
    waits = _waits(shares, late)
    largest = max(waits, key=lambda what: waits[what], default="")
    longest = waits.get(largest, 0.0)
    if use.is_crowded_out and longest < 1 - MOSTLY_WAITING:
        return f"{no}: {use.crowd}, so that this run gets too little of them."
    if use.computing < FULLY or longest >= BOUND_SHARE:
        for_what = ""
        if longest > 0:
            for_what = f", and wait mostly for {largest.replace('rank', 'worker')}"
        return f"{no}: the {use.name} compute {percent(use.computing)} of a step{for_what}."
    if math.isnan(use.computing):
        return f"{no}: the {use.name} reach {percent(use.flops)} of the speed they can reach."
    if use.held_back:
        return f"{no}: something keeps the run from using all processors of {use.held_back}."
    if use.has_idle_cores:
        return f"{no}: {percent(1 - use.cpu)} of the processors have nothing to do."
    return f"{no}: the {use.name} are busy all the time, but far below the speed they can reach."


def answer_in_words(use: DeviceUse, shares: Shares, late: Late = NOBODY) -> str:
    sentences = []
    if not math.isnan(use.computing):
        waits = [
            f"{percent(share)} of it for {what}"
            for what, share in _waits(shares, late).items()
            if share >= WORTH_NAMING
        ]
        also = f"; the rank that is ready first waits {listed(waits)}" if waits else ""
        if shares.rest >= REST_SHARE:
            also += f"; {percent(shares.rest)} goes to what is not timed separately"
        sentences.append(
            f"On average over all ranks, the {use.name} compute during {percent(use.computing)} of "
            f"a step{also}."
        )
    if not math.isnan(use.flops):
        of_it = ""
        if not math.isnan(use.efficiency):
            of_it = f", and {percent(use.efficiency)} while they compute"
        sentences.append(
            f"Model FLOPs utilization (MFU), the arithmetic that the model needs against what the "
            f"{use.name} do in the same time in large matrix products, is {percent(use.flops)}"
            f"{of_it}."
        )
    return " ".join([*sentences, *_sensors_in_words(use, shares), *_reasons_in_words(use)])


def _waits(shares: Shares, late: Late) -> dict[str, float]:
    """Returns the share of each thing that a step waits for, as the bottleneck counts it; without
    those that were not recorded."""
    found = {WAITED_FOR[verdict]: share for verdict, share in candidates(shares, late).items()}
    if math.isnan(shares.network):
        del found[WAITED_FOR["network-bound"]], found[WAITED_FOR["straggler"]]
    return {**found, "a checkpoint's copy": shares.checkpoint}


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
        found.append(f"The processors of the hosts are {percent(use.cpu)} busy.")
    return found


def _reasons_in_words(use: DeviceUse) -> list[str]:
    """Returns why devices that compute achieve less than they could, as far as it shows."""
    if use.crowd:
        crowd = use.crowd[0].upper() + use.crowd[1:]
        if use.is_gpu:
            return [f"{crowd}."]
        return [f"{crowd}: what this run computes takes longer because of that."]
    if use.held_back:
        return [
            f"While they compute, the ranks on {use.held_back} use far fewer cores than those on "
            "other hosts, though its processors are not full: a limit, such as a container's "
            "quota, holds them back."
        ]
    if use.has_idle_cores:
        return [
            "More cores are idle than used: the ranks have too few threads, or a limit, such as a "
            "container's quota, holds them back."
        ]
    if use.has_small_products:
        return ["Nothing else takes their time, so the matrix products are too small for them."]
    if use.achieves_little and use.computing >= FULLY:
        return ["Why they achieve so little was not recorded."]
    return []


def _advice(
    run: RunFacts, use: DeviceUse, verdict: str, crowded: Mapping[str, ProcessorLoad]
) -> list[Advice]:
    """Returns advice on computing; waiting is the business of the answers about what they wait
    for."""
    if verdict == "fully used":
        if use.power < AT_THE_LIMIT or math.isnan(use.power):
            return []
        return [
            Advice(
                "A higher power limit, where cooling and contract allow it, would speed them up; "
                "this shows how high it may be.",
                advice.on_host(run, next(iter(run.hosts)), "nvidia-smi -q -d POWER"),
            )
        ]
    if use.is_crowded_out:
        return [advice.on_crowded(run, crowded, saves_s=None)]
    if use.held_back or use.has_idle_cores:
        host = use.held_back or next(iter(run.hosts))
        return [
            Advice(
                f"See whether {host} limits what the run may use: the first number is the quota "
                "in microseconds of every second number, and max is no limit.",
                advice.on_host(run, host, "nproc; cat /sys/fs/cgroup/cpu.max"),
            )
        ]
    return larger_products(run) if use.has_small_products else []


def larger_products(run: RunFacts) -> list[Advice]:
    """Returns how to give the devices larger matrix products, as far as updates and memory
    allow."""
    settings, ranks = run.config.training, run.attempts[-1].ranks
    found = []
    fullest = max((peak.share for peak in device_peaks(run)), default=math.nan)
    # A micro-batch cannot have more than a rank's share of an update.
    most = settings.passes * settings.tokens_per_update / ranks
    by_memory = settings.micro_batch_limit * MEMORY_TO_FILL / fullest
    tokens = int(min(known([most, by_memory]))) // 64 * 64
    if tokens >= WORTH_ENLARGING * settings.micro_batch_limit:
        found.append(
            Advice(
                "Compute more tokens at once in the next run: larger micro-batches make larger "
                "matrix products, and leave the updates as they are.",
                setting_line("training.micro_batch_tokens", tokens),
            )
        )
    if settings.precision == "fp32" and any(d.startswith("cuda") for d in devices_of(run)):
        found.append(
            Advice(
                "Compute in half precision in the next run: GPUs have units of their own for it.",
                setting_line("training.precision", "fp16"),
            )
        )
    return found


def _figures(use: DeviceUse) -> list[Figure]:
    named = [
        ("computing, all ranks share", use.computing, "of the mean step, mean over ranks"),
        ("model FLOPs utilization", use.flops, "of what large matrix products reach"),
        ("efficiency while computing", use.efficiency, ""),
        ("driver's utilization", use.driver, "that some kernel was there, be it one that waits"),
        ("power of its limit", use.power, ""),
        ("processor", use.cpu, "of all cores of the hosts"),
    ]
    return [Figure(name, value, "share", note=note) for name, value, note in named]


def _host_figures(run: RunFacts, loads: Mapping[str, ProcessorLoad]) -> list[Figure]:
    found, devices = [], devices_of(run)
    for host in run.hosts.values():
        for name in gpus_of(host, devices):
            gpu = f"{host.host} {' '.join(name.split('/')[:2])}"
            power_w = host.mean(name.replace("utilization_percent", "power_w"))
            found += [
                Figure(f"{gpu}, driver's utilization", host.mean(name) / 100, "share"),
                Figure(f"{gpu}, power", power_w, "W"),
            ]
    for host_name, load in loads.items():
        named = [
            ("processor", load.busy, "of all its cores"),
            ("processor, this run", load.own, ""),
            ("processor, other programs", load.foreign, ""),
            ("processor, other machines", load.stolen, "that share its hardware"),
        ]
        found += [Figure(f"{host_name}, {name}", v, "share", note=note) for name, v, note in named]
    return found
