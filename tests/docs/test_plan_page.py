import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from dragoman.cli import app

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "plan.md"
TUTORIAL = DOCS / "tutorials" / "two-rented-machines.md"


def test_the_page_shows_what_is_printed():
    _, _, rest = PAGE.read_text(encoding="utf-8").partition("$ dragoman plan ")
    command, _, shown = rest.partition("\n")
    recipe, option, words = command.split(" ", 2)
    printed = CliRunner().invoke(app, ["plan", recipe, option, words.strip('"')])
    assert printed.exit_code == 0
    assert printed.output.strip() == shown.partition("```")[0].strip()


def test_the_tutorial_shows_lines_of_what_is_printed():
    text = TUTORIAL.read_text(encoding="utf-8")
    commands = re.findall(r"^dragoman (plan .* --assume .*)$", text, re.M)
    excerpts = re.findall(r"^```text\n(step .*?)```", text, re.DOTALL | re.MULTILINE)
    assert len(commands) == len(excerpts) == 2
    for command, excerpt in zip(commands, excerpts, strict=True):
        printed = CliRunner().invoke(app, shlex.split(command)).output
        lines = [line.rstrip() for line in printed.splitlines()]
        assert [line for line in excerpt.splitlines() if line not in lines] == []
