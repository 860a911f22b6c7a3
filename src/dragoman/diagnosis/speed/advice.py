"""Advice that several answers give about the same cause, each with a command that does it. Pure."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from dragoman.diagnosis.commands import setting_line, train_command
from dragoman.diagnosis.findings import Advice
from dragoman.diagnosis.phrasing import listed, percent
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.faults import FaultHistory
from dragoman.diagnosis.run.steps import StepSplit
from dragoman.diagnosis.speed.bottleneck import Late, data_makes_late
from dragoman.diagnosis.speed.foreign_load import ProcessorLoad
from dragoman.diagnosis.speed.intervals import interval_for

SAVING_SHARE = 0.01
"""Of the time: what saving may take of the steps behind it."""
START_AGAIN = "Let something start the run again when it breaks off: most was lost to waiting."
SAVE_MORE_OFTEN = "Save more often: checkpoints.lost_minutes bounds how much work a fault can cost."

PROCESSES = "ps -eo pid,user,pcpu,args --sort=-pcpu | head"
"""The programs that use the processors most."""
WAITING = "vmstat 1 5"
"""What the processors do: wa is waiting for the disk, id is idle, st is taken by other machines."""
GPU_LIMITS = "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER"
"""Whether a GPU is slowed down, and by what."""


def total_s(run: RunFacts, column: str) -> float:
    """Returns what the steps of the whole run spent on this column of `StepSplit`."""
    return float(np.nansum(run.step_parts[column]))


def hosts_of(run: RunFacts) -> list[str]:
    return run.attempts[-1].host_names if run.attempts else []


def has_ended(run: RunFacts) -> bool:
    """Returns whether the same command would end at once: a limit has been reached."""
    return bool(run.attempts) and run.attempts[-1].state == "finished"


def on_host(run: RunFacts, host: str, command: str) -> str:
    """Returns the command as it is given to a host: over ssh, unless the run has but one."""
    if len(hosts_of(run)) < 2:
        return command
    return f"ssh {host} {shlex.quote(command)}" if host in hosts_of(run) else ""


def hosts_named(run: RunFacts, who: str) -> list[str]:
    """Returns the hosts that these words name: node2, rank 3 on node2, node1 and node2."""
    words = who.replace(",", " ").split()
    return [host for host in hosts_of(run) if host in words]


def with_setting(run: RunFacts, key: str, value: object) -> str:
    """Returns the command that goes on with this setting; a line for the next recipe where the run
    has ended."""
    return setting_line(key, value) if has_ended(run) else train_command(run, {key: value})


def save_less_often(run: RunFacts) -> Advice:
    """Returns an interval with which copies take a hundredth of the time; twice the one that is
    set, where it is not known how often the run has saved."""
    settings, waited_s = run.config.checkpoints, total_s(run, "checkpoint_s")
    saves = len({save.step for attempt in run.attempts for save in attempt.saves})
    now = len(run.steps) / saves if saves else float(settings.every_steps or 0)
    step_s = (total_s(run, "step_s") - waited_s) / max(1, len(run.step_parts))
    every = interval_for(waited_s / saves, step_s, SAVING_SHARE) if saves else round(2 * now)
    change: dict[str, object] = {"checkpoints.every_steps": every}
    how = f"every {every:,} steps instead of about every {now:,.0f}"
    share = now / every if every else 1.0
    if share >= 1.0:
        change = {"checkpoints.lost_minutes": 2 * settings.lost_minutes}
        how, share = "half as often", 0.5
    return Advice(
        f"Saving holds up the steps behind it: save less often, {how}.",
        train_command(run, change, new_run=has_ended(run)),
        saves_s=waited_s * (1 - share),
    )


def on_slow_data(run: RunFacts, late: Late | None = None) -> list[Advice]:
    """Returns what to do about data that comes late to all ranks, or to some of them."""
    named = hosts_named(run, late.who) if late else []
    host = (named or hosts_of(run) or [""])[0]
    saves_s = total_s(run, "late_data_s") if late else total_s(run, "data_s")
    where = f" on {host}" if host and len(hosts_of(run)) > 1 else ""
    text = (
        f"See what the processes that read the data{where} wait for: in the columns of vmstat wa "
        "is the disk, st other machines on the same hardware, and id near 0 is processors in use."
    )
    return [Advice(text, on_host(run, host, WAITING), saves_s)]


def on_crowded(run: RunFacts, loads: Mapping[str, ProcessorLoad], saves_s: float | None) -> Advice:
    """Returns what to do about programs of others on the hosts of the run, the worst first."""
    load = next(iter(loads.values()))
    if not load.stolen <= load.foreign:  # also where the latter is not known
        return Advice(
            f"Rent another machine than {load.host}, or one whose processors are not shared: "
            f"others on the same hardware take {percent(load.stolen)} of them (steal, st below).",
            on_host(run, load.host, WAITING),
            saves_s,
        )
    return Advice(
        f"End or move the other programs on {load.host}, which take {percent(load.foreign)} of its "
        "processors; this lists them.",
        on_host(run, load.host, PROCESSES),
        saves_s,
    )


def on_lateness(
    run: RunFacts,
    late: Late,
    split: StepSplit,
    loads: Mapping[str, ProcessorLoad],
    is_shared_unevenly: bool = False,
) -> list[Advice]:
    """Returns what to do about ranks that the others wait for."""
    saves_s = total_s(run, "straggling_s")
    if is_shared_unevenly:
        why = "Share the work out in smaller pieces, which divide more evenly among the ranks."
        smaller = smaller_micro_batches(run, 2, why)
        return [replace(smaller, saves_s=saves_s / 2)] if smaller else []
    if data_makes_late(split):
        return on_slow_data(run, late if late.is_always_the_same else None)
    named = hosts_named(run, late.who) if late.is_always_the_same else []
    crowded = {host: load for host, load in loads.items() if host in named or not named}
    if crowded:
        return [on_crowded(run, crowded, saves_s)]
    if late.early or not late.is_always_the_same:
        return []
    host = (named or hosts_of(run) or [""])[0]
    look = GPU_LIMITS if _is_on_gpu(run) else PROCESSES
    found = [
        Advice(
            f"See what slows {late.who}: other programs, a limit on its processors, or heat.",
            on_host(run, host, look),
            saves_s,
        )
    ]
    left = [host for host in hosts_of(run) if host not in named]
    why = f"Else replace {listed(named)}, or train without {'them' if len(named) > 1 else 'it'}."
    without = on_hosts(run, left, why) if named else None
    return [*found, without] if without else found


def on_hosts(
    run: RunFacts, left: Sequence[str], text: str, saves_s: float | None = None
) -> Advice | None:
    """Returns the command that trains on these hosts of the run alone, with the reason for it in
    words; None: they are none or all, or another launcher has started the run."""
    if not left or len(left) == len(hosts_of(run)):
        return None
    words = shlex.split(train_command(run, {}, new_run=has_ended(run)))
    if "--hosts" not in words:
        return None
    place = words.index("--hosts") + 1
    if "," in words[place]:
        words[place] = ",".join(left)
    else:  # a host list holds more than names, and only its owner may change it
        text = f"{text} First leave only {listed(list(left))} in {words[place]}."
    return Advice(text, shlex.join(words), saves_s if saves_s and saves_s > 0 else None)


def smaller_micro_batches(run: RunFacts, times: int, text: str) -> Advice | None:
    """Returns the command of a new run whose steps have so many times as many micro-batches; None:
    the longest pairs would not fit into one."""
    smaller = run.config.training.micro_batch_limit // times
    if smaller < run.config.training.passes * run.config.data.max_length:
        return None
    return Advice(text, train_command(run, {"training.micro_batch_tokens": smaller}))


def _is_on_gpu(run: RunFacts) -> bool:
    return any(start.device.startswith("cuda") for start in run.attempts[-1].starts.values())


def on_faults(faults: FaultHistory) -> str:
    down_s = sum(fault.down_s for fault in faults.faults)
    return START_AGAIN if down_s > faults.cost_s / 2 else SAVE_MORE_OFTEN
