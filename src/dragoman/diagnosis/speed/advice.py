"""Advice that several answers give about the same cause, each with a command that does it. Pure."""

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from dragoman.diagnosis.commands import (
    line_for,
    other_launcher,
    start_options,
    train_command,
)
from dragoman.diagnosis.findings import Advice
from dragoman.diagnosis.phrasing import listed, seconds, sentence_of
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.steps import StepSplit
from dragoman.diagnosis.speed.bottleneck import Late, data_makes_late
from dragoman.diagnosis.speed.foreign_load import ProcessorLoad, share_in_words
from dragoman.diagnosis.speed.intervals import interval_for
from dragoman.diagnosis.speed.lateness import names_of_ranks, waits_without
from dragoman.diagnosis.speed.phases import RunBottleneck, over_in_words
from dragoman.diagnosis.speed.teams import teams_of
from dragoman.telemetry.read.tables import Array

AS_FAST = 1.02
"""Times the seconds of a step: fewer hosts are as fast."""
SAVING_SHARE = 0.01
"""Of the time: what saving may take of the steps behind it."""

PROCESSES = "ps -eo pid,user,pcpu,args --sort=-pcpu | head"
"""The programs that use the processors most."""
WAITING = "vmstat 1 5"
"""What the processors do: wa is waiting for the disk, id is idle, st is taken by other machines."""
GPU_LIMITS = "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER"
"""Whether a GPU is slowed down, and by what."""


def total_s(run: RunFacts, column: str) -> float:
    """Returns what the steps of the whole run spent on this column of `StepSplit`."""
    return float(np.nansum(run.step_parts[column]))


def waited_for_s(run: RunFacts, who: Collection[str]) -> Array:
    """Returns by how much each step of the run would be shorter if those named were not late."""
    steps = run.step_parts
    return waits_without(steps, names_of_ranks(run.attempts), np.arange(len(steps)), who)


def for_when_it_returns(found: RunBottleneck, what_to_do: Sequence[Advice]) -> list[Advice]:
    """Returns the advice, and where it is over one thing to do, with a word that it is."""
    over = over_in_words(found)
    if not over:
        return list(what_to_do)
    over = sentence_of(f"{over}; this is for when it returns")
    return [replace(first, text=f"{over} {first.text}") for first in what_to_do[:1]]


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


def on_each_host(run: RunFacts, hosts: Sequence[str], command: str) -> str:
    if len(hosts) < 2:
        return on_host(run, hosts[0] if hosts else "", command)
    return f"for host in {' '.join(hosts)}; do ssh $host {shlex.quote(command)}; done"


def hosts_named(run: RunFacts, who: str) -> list[str]:
    """Returns the hosts that these words name: node2, rank 3 on node2, node1 and node2."""
    words = who.replace(",", " ").split()
    return [host for host in hosts_of(run) if host in words]


def with_setting(run: RunFacts, key: str, value: object) -> str:
    """Returns the command that goes on with this setting; a line for the next recipe where the run
    has ended."""
    return line_for(run, key, value) if has_ended(run) else train_command(run, {key: value})


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
    saves_s = total_s(run, "data_s")
    if late:
        late_data_s = np.nan_to_num(run.step_parts["late_data_s"])
        saves_s = float(np.minimum(late_data_s, waited_for_s(run, late.names)).sum())
    where = f" on {host}" if host and len(hosts_of(run)) > 1 else ""
    text = (
        f"See what the processes that read the data{where} wait for: in the columns of vmstat wa "
        "is the disk, st other machines on the same hardware, and id near 0 is processors in use."
    )
    if address := run.config.data.prepared_from:
        text = (
            f"Training tokens arrive from {address}, possibly more slowly than they are trained "
            "on: let hosts keep more of them (data.prepared_max_bytes), or bring the data nearer. "
            f"{text}"
        )
    return [Advice(text, on_host(run, host, WAITING), saves_s)]


def on_crowded(run: RunFacts, loads: Mapping[str, ProcessorLoad], saves_s: float | None) -> Advice:
    """Returns what to do about programs of others on the hosts of the run, the worst first."""
    load = next(iter(loads.values()))
    takes = share_in_words([load])
    if not load.stolen <= load.foreign:  # also where the latter is not known
        return Advice(
            f"Rent another machine than {load.host}, or one whose processors are not shared: "
            f"others on the same hardware take {takes} (steal, st below).",
            on_host(run, load.host, WAITING),
            saves_s,
        )
    return Advice(
        f"End or move the other programs that take {takes}; this lists them.",
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
    if is_shared_unevenly:
        why = "Share the work out in smaller pieces, which divide more evenly among the ranks."
        smaller = smaller_micro_batches(run, 2, why)
        return [replace(smaller, saves_s=total_s(run, "straggling_s") / 2)] if smaller else []
    if data_makes_late(split):
        return on_slow_data(run, late if late.is_always_the_same else None)
    named = hosts_named(run, late.who) if late.is_always_the_same else []
    crowded = {host: load for host, load in loads.items() if host in named or not named}
    if crowded:
        worst = next(iter(crowded))
        return [on_crowded(run, crowded, float(waited_for_s(run, [worst]).sum()))]
    if late.early or not late.is_always_the_same:
        return []
    look = GPU_LIMITS if _is_on_gpu(run) else PROCESSES
    found = Advice(
        f"See what slows {late.who}: other programs, a limit on the processors, or heat.",
        on_each_host(run, named or hosts_of(run)[:1], look),
        saves_s=float(waited_for_s(run, late.names).sum()),
    )
    return [found, *_without_late(run, named, split)]


def _without_late(run: RunFacts, named: Sequence[str], split: StepSplit) -> list[Advice]:
    """Returns the command for the other hosts, where they alone would be as fast at least."""
    left = [host for host in hosts_of(run) if host not in named]
    teams = teams_of(run)
    if not named or not left or teams is None:
        return []
    none_late = split._replace(
        step_s=split.step_s - split.straggling_s,
        straggling_s=0.0,
        busy_s=min(split.busy_s, split.compute_s),
    )
    others = teams._replace(now=teams.now._replace(split=none_late)).with_hosts(len(left)).team
    if others.step_s > AS_FAST * split.step_s:
        return []
    text = (
        f"Else replace {listed(named)}, or train without {'them' if len(named) > 1 else 'it'}: a "
        f"step would take about {seconds(others.step_s)} instead of {seconds(split.step_s)}."
    )
    without = on_hosts(run, left, text)
    return [without] if without else []


def on_hosts(
    run: RunFacts, left: Sequence[str], text: str, saves_s: float | None = None
) -> Advice | None:
    """Returns the command that trains on these hosts of the run alone, with the reason for it in
    words; None: they are none or all, or another launcher has started the run."""
    if not left or len(left) == len(hosts_of(run)):
        return None
    options = start_options(run)
    if other_launcher(run) or "--hosts" not in options:
        return None
    given = options[options.index("--hosts") + 1]
    is_list = "," not in given  # it holds more than names, and only its owner may change it
    if is_list:
        text = f"{text} First leave only {listed(list(left))} in {given}."
    command = train_command(run, {}, has_ended(run), () if is_list else left)
    return Advice(text, command, saves_s if saves_s and saves_s > 0 else None)


def smaller_micro_batches(run: RunFacts, times: int, text: str) -> Advice | None:
    """Returns the command of a new run whose steps have so many times as many micro-batches; None:
    the longest pairs would not fit into one."""
    smaller = run.config.training.micro_batch_limit // times
    if smaller < run.config.training.passes * run.config.data.max_length:
        return None
    return Advice(text, train_command(run, {"training.micro_batch_tokens": smaller}))


def _is_on_gpu(run: RunFacts) -> bool:
    return any(start.device.startswith("cuda") for start in run.attempts[-1].starts.values())
