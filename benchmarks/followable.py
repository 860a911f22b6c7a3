"""Can the advice of a report be followed? A run and its findings come in, what cannot goes out.

Nothing is executed: recipe lines are loaded, commands are parsed by the program they call, and
whatever they name must be there. Training is asked whether it would go on.
"""

import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

import typer
from typer.exceptions import TyperException

from dragoman.cli import app
from dragoman.config import load_config
from dragoman.diagnosis.commands import ends_at_once, is_recipe_line, with_settings
from dragoman.diagnosis.findings import Advice, Finding
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.errors import DragomanError
from dragoman.rundir import RunDir
from dragoman.training.claim import incompatible_changes

MOST_ADVICE = 3
PROGRAMS = {
    *(
        "cat",
        "cd",
        "df",
        "dmesg",
        "du",
        "ethtool",
        "free",
        "grep",
        "head",
        "iostat",
        "ip",
        "iperf3",
    ),
    *(
        "journalctl",
        "kill",
        "less",
        "lscpu",
        "mkdir",
        "mtr",
        "mv",
        "nproc",
        "nvidia-smi",
        "paste",
        "ping",
        "ps",
    ),
    *("python3", "shuf", "sleep", "sort", "ss", "sudo", "tail", "tc", "top", "uptime", "vmstat"),
    *("watch", "wc"),
}
"""That a Linux machine has, or its package manager."""
KEYWORDS = {"until", "while", "do", "done", "if", "then", "else", "fi", "!"}
NOT_ADVICE = (
    (re.compile(r"bf16 on the wire"), "names a setting that does not exist"),
    (re.compile(r"\bsee the answer\b", re.IGNORECASE), "points to another answer"),
    (re.compile(r"the same command", re.IGNORECASE), "leaves the command to be looked up"),
)
_BLANK = re.compile(r"<[a-z][\w -]*>|\.\.\.")
_LOOP = re.compile(r"for (?P<name>\w+) in (?P<values>[^;]+); do (?P<body>.+); done")
_OPERATORS = {"|", "||", "&&", ";", "&"}


def unfollowable(run: RunFacts, findings: Mapping[str, Finding]) -> list[str]:
    """Returns a sentence for each advice that cannot be followed, which begins with its key."""
    return [
        f"{key}: {problem}"
        for key, finding in findings.items()
        for problem in _problems(run, finding)
    ]


def _problems(run: RunFacts, finding: Finding) -> Iterator[str]:
    if len(finding.advice) > MOST_ADVICE:
        yield f"has {len(finding.advice)} pieces of advice"
    for advice in finding.advice:
        yield from (f"{problem}: {advice.text} [{advice.command}]" for problem in _of(run, advice))


def _of(run: RunFacts, advice: Advice) -> Iterator[str]:
    yield from (what for pattern, what in NOT_ADVICE if pattern.search(advice.text))
    if not advice.command:
        yield "has no command"
    elif blank := _BLANK.search(advice.command):
        yield f"has a blank to fill in, {blank[0]}"
    elif is_recipe_line(advice.command):
        yield from _of_recipe(run, advice.command)
    else:
        yield from _of_shell(run, advice.command)
    if advice.recipe:
        yield from _of_recipe(run, advice.recipe)


def _of_recipe(run: RunFacts, lines: str) -> Iterator[str]:
    try:
        changed = with_settings(run.config, tomllib.loads(lines))
    except (DragomanError, tomllib.TOMLDecodeError) as error:
        yield f"the recipe refuses it ({error})"
        return
    if changed == run.config:
        yield "the run has this setting already"


def _of_shell(run: RunFacts, command: str) -> Iterator[str]:
    read = ["bash", "-n", "-c", command]
    checked = subprocess.run(read, capture_output=True, text=True, check=False)
    if checked.returncode:
        yield f"bash refuses it ({checked.stderr.strip()})"
        return
    for line in _unrolled(command):
        for words in _commands(line):
            yield from _of_words(run, words)


def _unrolled(command: str) -> list[str]:
    """Returns the body of a loop once for each of its values; else the command itself."""
    loop = _LOOP.fullmatch(command)
    if loop is None:
        return [command]
    return [loop["body"].replace(f"${loop['name']}", value) for value in loop["values"].split()]


def _commands(line: str) -> Iterator[list[str]]:
    """Yields the words of each command of a line: of both sides of a pipe, for example."""
    words = shlex.shlex(line, posix=True, punctuation_chars="|&;")
    words.whitespace_split = True
    found = list(words)
    while found:
        command = list(takewhile(lambda word: word not in _OPERATORS, found))
        if command:
            yield command
        found = found[len(command) + 1 :]


def _of_words(run: RunFacts, words: list[str]) -> Iterator[str]:
    match words:
        case [keyword, *rest] if keyword in KEYWORDS:
            yield from _of_words(run, rest)
        case ["dragoman", *arguments]:
            yield from _of_dragoman(run, arguments)
        case ["ssh", host, *rest]:
            hosts = {name for attempt in run.attempts for name in attempt.host_names}
            if host not in hosts:
                yield f"{host} is not a host of this run"
            for inner in _commands(" ".join(rest)):
                yield from _of_words(run, inner)
        case [program, *_] if program not in PROGRAMS:
            yield f"{program} is not a known program"


def _of_dragoman(run: RunFacts, arguments: list[str]) -> Iterator[str]:
    name, *rest = arguments or [""]
    command = typer.main.get_group(app).commands.get(name)
    if command is None:
        yield f"dragoman has no command {name}"
        return
    try:
        given = command.make_context(name, rest).params
    except TyperException as error:
        yield f"dragoman refuses it ({error})"
        return
    folder = given.get("run")
    if name == "train":
        yield from _of_train(run, given)
    elif isinstance(folder, Path) and not RunDir(folder).config.is_file():
        yield f"{folder} is not a run"
    elif isinstance(folder, Path) and (checkpoint := given.get("checkpoint")):
        names = [checkpoint] if isinstance(checkpoint, str) else checkpoint
        for each in names:  # translate takes several, as an ensemble
            yield from _of_checkpoint(RunDir(folder), each)


def _of_checkpoint(run: RunDir, name: str) -> Iterator[str]:
    folder = f"step-{int(name):08d}" if name.isdecimal() else name
    if not (run.checkpoints / folder).exists():
        yield f"there is no checkpoint {name}"


def _of_train(run: RunFacts, given: Mapping[str, Any]) -> Iterator[str]:
    try:
        config = load_config(given["recipe"], given["overrides"] or ())
    except DragomanError as error:
        yield f"the recipe is refused ({error})"
        return
    folder = RunDir(given["run"] or Path("runs") / config.name)
    if not folder.config.is_file():
        return
    if changes := incompatible_changes(load_config(folder.config), config):
        yield f"training refuses to go on with another {changes[0][0]}"
    elif folder.root == run.record.directory.root and (ending := ends_at_once(run, config)):
        yield f"training ends at once ({ending})"
