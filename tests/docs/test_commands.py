"""What the documentation shows can be typed, and help is quick and has an example."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from dragoman.cli import app

ROOT = Path(__file__).parents[2]
COMMANDS = sorted(
    name for name, command in typer.main.get_command(app).commands.items() if not command.hidden
)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def help_of(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", *arguments, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"COLUMNS": "100"},
    )
    return done.stdout


def test_help_names_every_command():
    overview = help_of()
    assert all(command in overview for command in COMMANDS)
    assert {"demo", "config", "prepare", "train", "report", "evaluate", "translate"} <= set(
        COMMANDS
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_has_an_example(command):
    assert re.search(rf"Example:.*dragoman {command}", " ".join(help_of(command).split()))


def test_help_imports_nothing_heavy():
    """Seconds depend on the machine; what is imported does not."""
    program = (
        "import sys; sys.argv = ['dragoman', '--help']\n"
        "from dragoman.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'numpy', 'sentencepiece', 'sacrebleu', 'plotly', 'pydantic', 'psutil'}\n"
        "print('loaded:', sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "loaded: []"


def test_help_costs_little_more_than_starting_python():
    """Processor time of `--help` against an interpreter that imports typer alone."""

    def cpu_s(program):
        code = f"import time\n{program}\nprint(time.process_time(), file=__import__('sys').stderr)"
        runs = [
            subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
            for _ in range(5)
        ]
        return min(float(run.stderr) for run in runs)

    help_program = (
        "import sys; sys.argv = ['dragoman', '--help']\n"
        "from dragoman.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass"
    )
    typer_program = help_program.replace(
        "from dragoman.cli import main",
        "import typer\napp = typer.Typer()\napp.command()(lambda: None)\nmain = app",
    )
    assert cpu_s(help_program) < 2.5 * cpu_s(typer_program)


def shown_commands():
    """Each line of the pages' shell blocks that starts a program of this project."""
    for page in PAGES:
        for block in re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.S):
            for line in block.replace("\\\n", " ").splitlines():
                if line.startswith(("dragoman ", "make ")):
                    yield pytest.param(line.split("  #")[0].strip(), id=f"{page.stem}: {line[:50]}")


@pytest.mark.parametrize("line", list(shown_commands()))
def test_a_command_shown_in_the_documentation_exists(line):
    program, name, *arguments = shlex.split(line.split("|")[0])
    if program == "make":
        assert re.search(rf"^{name}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
        return
    known = typer.main.get_command(app).commands[name]
    options = {option for parameter in known.params for option in parameter.opts}
    used = {argument.split("=")[0] for argument in arguments if argument.startswith("-")}
    assert used <= options | {"--help"}
    for argument in arguments:
        if argument.startswith("recipes/"):
            assert (ROOT / argument).exists()
