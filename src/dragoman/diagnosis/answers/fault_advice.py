"""What to do about the faults of a run, by their causes.

A fault that the same command would meet again gets what helps against its cause and nothing else:
neither starting again nor saving more often does.
"""

import shlex
from collections.abc import Sequence

from dragoman.checkpoints.names import folder_of
from dragoman.diagnosis.commands import (
    is_in_progress,
    line_for,
    other_launcher,
    setting_line,
    train_command,
)
from dragoman.diagnosis.findings import Advice
from dragoman.diagnosis.learning.remedies import (
    less_memory,
    lower_the_rate,
    use_best,
)
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.faults import Fault

LOW_GOODPUT = 0.95
WORTH_S = 60.0
"""Faults that cost less are not worth any advice, unless the run has ended with one."""
LEAST_STEPS = 20
"""Nor are those of a run that has hardly begun."""
MORE_OFTEN = 4
"""How many times as often to save, where much work is lost."""


def advice_on(run: RunFacts, same: Sequence[Fault]) -> list[Advice]:
    """Returns what to do about the faults of a run; `same`: those that came again and again."""
    last = run.faults.unresumed
    if last and last.comes_again:
        return _cure(run, last)
    if same:
        return _on_repeated(run, same)
    found = _cheaper(run)
    if last and last.cause == "lost-rank" and last.host:
        found = [_kernel_log(run, [last.host]), *found]
    return found


def hosts_ever(run: RunFacts) -> list[str]:
    """Returns all hosts of all attempts, each once."""
    names = (name for attempt in run.attempts for name in attempt.host_names)
    return list(dict.fromkeys(names))


def _cure(run: RunFacts, fault: Fault) -> list[Advice]:
    """Returns what helps against a fault that the same command would meet again."""
    if fault.could_not_write:
        return [_make_room(run, fault)]
    if fault.cause == "diverged":
        return [
            lower_the_rate(
                run,
                f"the loss ran away after step {fault.step:,}, and going back to a "
                "checkpoint did not help",
            ),
            *use_best(run, "it is from before the loss ran away, as far as its scores tell"),
        ]
    if fault.cause == "out-of-memory":
        return less_memory(run, _out_of_memory_words(fault))
    return [_suspect_hardware(run, fault), *_set_aside(run, fault)]


def _out_of_memory_words(fault: Fault) -> str:
    where = f" of {fault.host}" if fault.host else ""
    return f"the memory{where} does not hold a single long pair, which smaller batches cannot help"


def _make_room(run: RunFacts, fault: Fault) -> Advice:
    where = f" on {fault.host}" if len(hosts_ever(run)) > 1 and fault.host else ""
    return Advice(
        f"Make room on the disk{where}, or give the run a folder that can be written to, before it "
        "starts again there: it could not save.",
        _on(run, [fault.host], "df -h"),
    )


def _suspect_hardware(run: RunFacts, fault: Fault) -> Advice:
    hosts = [fault.host] if fault.host else run.attempts[-1].host_names
    who = fault.host or "the hosts"
    look = "journalctl -k --no-pager | grep -iE 'xid|ecc|mce|hardware error' | tail"
    return Advice(
        f"See whether the memory or the GPU of {who} is faulty, before it takes part again: its "
        "weights came to differ from the others', which only broken hardware or software does.",
        _on(run, hosts, look),
    )


def _set_aside(run: RunFacts, fault: Fault) -> list[Advice]:
    """Returns how to move the checkpoints away that may hold wrong weights; empty: none do."""
    equal, root = equal_until(run, fault), run.record.directory.root
    kept = {folder.step: folder.name for folder in run.record.checkpoints}
    hosts = run.attempts[-1].host_names
    has_copies = len(hosts) > 1 and not other_launcher(run)
    if has_copies:  # this folder has only those that were fetched
        saved = sorted({save.step for attempt in run.attempts for save in attempt.saves})
        kept |= {step: folder_of(step) for step in saved[-run.config.checkpoints.keep_last :]}
    suspect = [name for step, name in sorted(kept.items()) if step > equal]
    if not suspect:
        return []
    move = " ".join(["mkdir -p suspect && mv", *(f"checkpoints/{name}" for name in suspect)])
    if has_copies:
        there = shlex.quote(f"cd ~/dragoman/runs/{root.name} && {move} suspect")
        command = f"for host in {' '.join(hosts)}; do ssh $host {there}; done"
        where = " on every host (below in ~/dragoman, unless a host list names another folder)"
    else:
        command, where = f"cd {shlex.quote(str(root))} && {move} suspect", ""
    older = any(step <= equal for step in kept)
    then = (
        "the run then goes on from an older one" if older else "without an older one it starts over"
    )
    return [
        Advice(
            f"Move the checkpoints away that were saved after step {equal:,}{where}, since their "
            f"weights may be wrong; {then}.",
            command,
        )
    ]


def equal_until(run: RunFacts, fault: Fault) -> int:
    """Returns the step after which the ranks' weights were last found to be equal."""
    every = run.config.training.compare_every_steps
    return (fault.step - 1) // every * every if every else 0


def _on_repeated(run: RunFacts, same: Sequence[Fault]) -> list[Advice]:
    """Returns how to find the cause of a failure that comes again and again."""
    last = same[-1]
    if last.kind == "broken off":
        hosts = next(a.host_names for a in run.attempts if a.number == last.attempt)
        return [_kernel_log(run, hosts), _other_order(run, last)]
    if last.kind == "rolled back":
        return [lower_the_rate(run, f"the loss runs away after step {last.step:,} each time")]
    if last.comes_again:
        return _cure(run, last)
    events = shlex.quote(str(run.record.directory.events))
    read = Advice(
        "Read what the failed attempts recorded, in full.",
        f"grep -rhE 'attempt-ended.*failed' {events} | tail -n {len(same)}",
    )
    return [read, _other_order(run, last)]


def _kernel_log(run: RunFacts, hosts: Sequence[str]) -> Advice:
    """Returns how to see whether the system has killed a process of the run."""
    command = "journalctl -k --no-pager | grep -iE 'out of memory|killed process' | tail"
    where = f" on {hosts[0]}" if len(hosts) == 1 and len(hosts_ever(run)) > 1 else ""
    return Advice(
        f"See whether the system killed the process{where}, for want of memory or for another "
        "reason.",
        _on(run, hosts, command),
    )


def _on(run: RunFacts, hosts: Sequence[str], command: str) -> str:
    """Returns the command as these hosts get it, which need not take part in the last attempt."""
    named = [host for host in hosts if host]
    if len(hosts_ever(run)) < 2 or not named:
        return command
    return "; ".join(f"ssh {shlex.quote(host)} {shlex.quote(command)}" for host in named)


def _other_order(run: RunFacts, fault: Fault) -> Advice:
    seed = run.config.training.seed + 1
    return Advice(
        f"Try another order of the training pairs in a new run: if it passes step {fault.step:,}, "
        "the pairs of that step are the cause, otherwise the machine or the program is.",
        train_command(run, {"training.seed": seed}, new_run=True),
    )


def _cheaper(run: RunFacts) -> list[Advice]:
    """Returns what would have made the faults cheaper; empty: they cost little, or it is too early
    to say."""
    history = run.faults
    is_cheap = history.time_goodput >= LOW_GOODPUT or history.cost_s < WORTH_S
    if not history.faults or is_cheap or history.all_steps < LEAST_STEPS:
        return []
    worst = max(history.faults, key=lambda fault: fault.cost_s)
    if worst.comes_again:
        return [_make_room(run, worst)] if worst.could_not_write else []
    down_s = sum(fault.down_s for fault in history.faults)
    if down_s > history.cost_s / 2:  # a run that goes on is not to be stopped for that
        return [] if is_in_progress(run) else [_start_again(run, down_s)]
    settings = run.config.checkpoints
    if settings.every_steps:
        every_steps = max(1, settings.every_steps // MORE_OFTEN)
        line = line_for(run, "checkpoints.every_steps", every_steps)
    else:
        line = setting_line("checkpoints.lost_minutes", settings.lost_minutes / MORE_OFTEN)
    saves_s = (history.cost_s - down_s) * (1 - 1 / MORE_OFTEN)
    return [Advice("Save more often: most was lost to steps done again.", line, saves_s)]


def _start_again(run: RunFacts, down_s: float) -> Advice:
    is_over = run.attempts[-1].state == "finished"
    which = "the next run" if is_over else "the run"
    launcher = other_launcher(run)
    command = train_command(run, {}, new_run=is_over and not launcher)
    return Advice(
        f"Let {launcher or 'the shell'} start {which} again when it breaks off: most was lost to "
        "waiting for that.",
        command if launcher else f"until {command}; do sleep 30; done",
        down_s,
    )
