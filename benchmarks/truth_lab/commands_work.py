"""Can advice be followed? Its command must parse for this run, or be lines of its recipe."""

import re
import shlex
import shutil
from collections.abc import Iterator, Set
from pathlib import Path

import typer.main
from typer.exceptions import TyperException

from dragoman.cli import app
from dragoman.config import load_config
from dragoman.errors import DragomanError

_RECIPE_LINES = re.compile(r"([a-z_]+(\.[a-z_0-9]+)+ = .+\n?)+")
_BETWEEN = re.compile(r"&&|\|\||[|;]")
_KEYWORDS = {"until", "while", "do", "done"}


def why_not_followable(command: str, run: Path, hosts: Set[str]) -> str:
    """Returns what is wrong with a command; empty: nothing."""
    if not command:
        return "no command"
    if _RECIPE_LINES.fullmatch(command):
        lines = [line.replace(" = ", "=", 1) for line in command.splitlines()]
        why = _refused_settings(lines, run / "config.toml")
    else:
        why = next(filter(None, _faults(command, hosts)), "")
    return why and f"{command!r}: {why}"


def _faults(command: str, hosts: Set[str]) -> Iterator[str]:
    """Yields what is wrong with each command of a line; those within quotes are the host's."""
    try:
        words = shlex.split(command)
        # A quoted pipe is one word with others, and belongs to what comes before.
        is_one = not any(word in _KEYWORDS or _BETWEEN.fullmatch(word) for word in words)
        parts = [words] if is_one else [shlex.split(part) for part in _BETWEEN.split(command)]
    except ValueError as error:
        yield str(error)
        return
    for part in parts:
        match [word for word in part if word not in _KEYWORDS]:
            case ["dragoman", *arguments]:
                yield _refused_by_dragoman(arguments, hosts)
            case ["ssh", *arguments]:
                yield "" if hosts & set(arguments) else "names no host of the run"
            case [first, *_]:
                yield "" if shutil.which(first) else f"there is no command {first}"


def _refused_by_dragoman(arguments: list[str], hosts: Set[str]) -> str:
    name, *rest = arguments or [""]
    command = typer.main.get_group(app).commands.get(name)
    if command is None:
        return f"dragoman has no command {name}"
    try:
        given = command.make_context(name, list(rest)).params
    except TyperException as error:
        return f"dragoman refuses it ({error})"
    if name != "train":
        return ""
    where = given["hosts"] or ""
    if len(hosts) > 1 and not where:
        return "it would train on this machine alone"
    if where.endswith(".toml") and not Path(where).exists():
        return f"{where} does not exist"
    return _refused_settings(given["overrides"] or [], Path(given["recipe"]))


def _refused_settings(overrides: list[str], recipe: Path) -> str:
    try:
        load_config(recipe, overrides)
    except DragomanError as error:
        return str(error)
    return ""
