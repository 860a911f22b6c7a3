"""The commands and recipe lines of advice, made so that they work for the run they are given for.

The facts of a run and the settings to change come in, one line for a shell or a recipe goes out.
"""

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import count, takewhile
from pathlib import Path
from typing import Any

import tomli_w

from dragoman.config import Config, as_before_accumulation, dump_config, parse_config, toml_value
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.telemetry.events import EndCause
from dragoman.training.claim import incompatible_changes
from dragoman.training.ending import planned_ending
from dragoman.training.state import RunState

Settings = Mapping[str, object]
"""Dotted keys of a recipe with their values."""

# The sections that decide what is prepared, beside which the data of the old run must stay.
_PREPARED_BY = ("data", "cleaning", "tokenizer")
_RECIPE_LINE = re.compile(r"[a-z_]+(\.[a-z_0-9]+)+ = ")


def setting_line(key: str, value: object) -> str:
    """Returns a line of a recipe: training.steps = 20000."""
    return f"{key} = {toml_value(value)}"


def line_for(run: RunFacts, key: str, value: object) -> str:
    """Returns the line of the recipe that this run was started with, for a value as its config has
    it: `sync.accumulate` converts some of them."""
    return setting_line(key, as_before_accumulation(run.config, key, value))


def recipe_lines(settings: Settings) -> str:
    """Returns the settings as the tables of a recipe: [sync], and below it mode = "local"."""
    tree: dict[str, dict[str, object]] = {}
    for key, value in settings.items():
        section, _, name = key.partition(".")
        tree.setdefault(section, {})[name] = value
    return tomli_w.dumps(tree).strip()


def is_recipe_line(command: str) -> bool:
    """Returns whether a piece of advice is for the recipe, and not for a shell."""
    return _RECIPE_LINE.match(command) is not None


def other_launcher(run: RunFacts) -> str:
    """Returns srun, mpirun or torchrun, if it has started the last attempt; else nothing."""
    launcher = run.record.start.launcher
    return "" if launcher == "dragoman" else launcher


def is_in_progress(run: RunFacts) -> bool:
    return bool(run.attempts) and run.attempts[-1].state == "training"


def train_command(
    run: RunFacts, settings: Settings, new_run: bool = False, hosts: Sequence[str] = ()
) -> str:
    """Returns the command that continues this run with these settings, on these `hosts` if any.

    It starts a new run instead, in a folder of its own, with `new_run`, and where training would
    refuse to continue the old one with such settings, or end at once. Where another launcher has
    started the run, only its user knows how: then these are lines for the recipe, or without any
    the command that shows what the run would go on from.
    """
    target = folder_for(run, settings, new_run)
    is_new = target != run.record.directory.root
    if is_new and any(key.partition(".")[0] in _PREPARED_BY for key in settings):
        settings = {"data.prepared": f"{run.config.prepared_folder}-{target.name}", **settings}
    if other_launcher(run):
        lines = [line_for(run, key, value) for key, value in settings.items()]
        return "\n".join(lines) or shlex.join(
            ["dragoman", "inspect", str(run.record.directory.root)]
        )
    recipe, options, there = run.record.directory.config, start_options(run), _start_folder(run)
    if hosts:
        options = [*options]
        options[options.index("--hosts") + 1] = ",".join(hosts)
    if there:
        recipe, target = recipe.resolve(), target.resolve()
    words = ["dragoman", "train", str(recipe), "--run", str(target), *options]
    for key, value in settings.items():
        words += ["--set", f"{key}={toml_value(value)}"]
    return in_start_folder(run, shlex.join(words))


def folder_for(run: RunFacts, settings: Settings, new_run: bool = False) -> Path:
    """Returns the folder of a run with these settings: its own, where it can go on with them, or a
    free one beside it."""
    root = run.record.directory.root
    changed = with_settings(run.config, settings)
    if new_run or incompatible_changes(run.config, changed) or ends_at_once(run, changed):
        return _free_folder(root)
    return root


def in_start_folder(run: RunFacts, command: str) -> str:
    """Returns a command that depends on relative paths of the recipe, so that it finds them."""
    folder = _start_folder(run)
    return f"cd {shlex.quote(str(folder))} && {command}" if folder else command


def limits_beyond(run: RunFacts, until_step: int) -> dict[str, object]:
    """Returns the settings that let a run reach this step: those limits that would end it before.

    Empty: none would, and the same command goes on.
    """
    limits, raised = run.config.training, dict[str, object]()
    done = int(run.steps["step"][-1]) if len(run.steps) else 0
    growth = until_step / done if done else math.inf
    if limits.steps is not None and limits.steps < until_step:
        raised["training.steps"] = until_step
    if limits.epochs is not None and done:
        epochs = growth * float(run.steps["epoch"][-1])
        if epochs > limits.epochs:
            raised["training.epochs"] = math.ceil(epochs)
    if limits.hours is not None and done:
        hours = growth * run.wall_s / 3600
        if hours > limits.hours or _ended_by(run, "hours"):
            raised["training.hours"] = _round_up(max(hours, limits.hours * growth))
    if limits.patience is not None:
        to_come = max(0, until_step - done) // run.config.evaluation.every_steps
        waited = _evaluations_since_best(run)
        if _ended_by(run, "patience"):  # the record may lack some of those that it counted
            waited = max(waited, limits.patience)
        if waited + to_come >= limits.patience:
            raised["training.patience"] = waited + to_come + 1
    return raised


def ends_at_once(run: RunFacts, config: Config) -> str:
    """Returns why the run would end without another step, if it were resumed with this config;
    empty: it would go on."""
    if not len(run.steps):
        return ""
    step, epoch = int(run.steps["step"][-1]), float(run.steps["epoch"][-1])
    epochs, hours = config.training.epochs, run.config.training.hours
    elapsed_s = float(run.steps["step_s"].sum()) + math.fsum(e.seconds for e in run.evaluations)
    if hours is not None and _ended_by(run, "hours"):
        elapsed_s = max(elapsed_s, 3600 * hours)  # what is recorded of it is rounded
    state = RunState(
        step=step,
        elapsed_s=elapsed_s,
        evaluations_since_best=_evaluations_since_best(run),
    )
    ending = planned_ending(config, round(step * epochs / epoch) if epochs else None, state)
    return ending.reason if ending else ""


def flat_settings(tree: Mapping[str, Any], prefix: str = "") -> dict[str, object]:
    """Returns the dotted keys of a recipe's tables."""
    found: dict[str, object] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            found |= flat_settings(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found


def with_settings(config: Config, settings: Settings) -> Config:
    """Returns the config with these keys changed; raises ConfigError for what is not allowed."""
    return parse_config(dump_config(config), "config.toml", dict(settings))


def start_options(run: RunFacts) -> list[str]:
    """Returns the options of `dragoman train` that start it where the last attempt ran."""
    if run.record.start.options is not None:
        return run.record.start.options
    attempt = run.attempts[-1] if run.attempts else None
    if attempt is None:
        return []
    hosts = [host for _, host in sorted(attempt.hosts.items())]
    names = list(dict.fromkeys(hosts))
    per_host = {hosts.count(name) for name in names}
    options = ["--hosts", ",".join(names)] if len(names) > 1 else []
    if len(per_host) == 1 and (workers := per_host.pop()) > 1:
        options += ["--workers", str(workers)]
    return options


def _start_folder(run: RunFacts) -> Path | None:
    """Returns the folder in which the run was started, where relative paths would not be found from
    here; None: they would, there are none, or that folder is not on this machine."""
    start = run.record.start
    there = Path(start.folder)
    if not start.folder or there == Path.cwd():
        return None
    options = start.options or []
    paths = [run.config.prepared_folder]
    if "--hosts" in options:  # names, or the path of a host list
        paths.append(Path(options[options.index("--hosts") + 1]))
    depends = any(not path.is_absolute() and (there / path).exists() for path in paths)
    return there if depends else None


def _free_folder(root: Path) -> Path:
    """Returns the first of run-2, run-3, ... that is not there yet."""
    return next(
        folder
        for number in count(2)
        if not (folder := root.with_name(f"{root.name}-{number}")).exists()
    )


def _ended_by(run: RunFacts, cause: EndCause) -> bool:
    """Returns whether this limit has ended the last attempt."""
    ends = run.attempts[-1].ends if run.attempts else []
    return any(end.event.cause == cause for end in ends)


def _evaluations_since_best(run: RunFacts) -> int:
    """Returns how many evaluations in a row were not a new best, as training.patience counts."""
    return sum(1 for _ in takewhile(lambda e: not e.is_best, reversed(run.evaluations)))


def _round_up(hours: float) -> float:
    """Returns two digits, so that the command is easy to read, and never less than `hours`."""
    unit = 10.0 ** (math.floor(math.log10(hours)) - 1) if hours > 0 else 1.0
    return round(math.ceil(hours / unit) * unit, 6)
