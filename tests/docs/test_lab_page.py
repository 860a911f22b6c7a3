"""What docs/lab.md shows can be typed, and every command of the lab is on the page."""

import re
import shlex
from pathlib import Path

import pytest
import typer.main

from dragoman.cli.lab import lab

PAGE = (Path(__file__).parents[2] / "docs" / "lab.md").read_text(encoding="utf-8")
COMMANDS = typer.main.get_command(lab).commands
SHOWN = re.findall(r"^sudo .venv/bin/dragoman lab (.*)$", PAGE, re.M)


@pytest.mark.parametrize("line", SHOWN)
def test_a_command_on_the_page_is_understood(line):
    name, *arguments = shlex.split(line)
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    options = {option for parameter in COMMANDS[name].params for option in parameter.opts}
    assert {word for word in own if word.startswith("--")} <= options
    COMMANDS[name].make_context(name, arguments)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_on_the_page_and_has_an_example(name):
    assert f"`lab {name}" in PAGE
    assert f"Example: dragoman lab {name}" in COMMANDS[name].help
