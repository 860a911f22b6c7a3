"""What the documentation shows can be typed, and help is quick and has an example."""

import os
import re
import shlex
import subprocess
import sys

import pytest
import typer.main
from docs.shown_blocks import PAGES, ROOT, TREATMENT, Elsewhere, Run, shown_blocks, treatment_of
from docs.shown_folder import (
    ACTIVATE,
    run_in_fresh_shell,
    script_of,
    write_folder,
    write_recipe_of_page,
)

from dragoman.cli import app
from dragoman.config import load_config

BLOCKS = list(shown_blocks())
COMMANDS = sorted(
    name for name, command in typer.main.get_command(app).commands.items() if not command.hidden
)


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


def test_help_breaks_lines_where_the_terminal_ends():
    """Below the first paragraph, typer keeps the line breaks of the code."""
    group = typer.main.get_command(app)
    for command in [*group.commands.values(), *group.commands["lab"].commands.values()]:
        _, *below = re.split(r"\n\s*\n", command.help.strip())
        assert not [paragraph for paragraph in below if "\n" in paragraph], command.name


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
    """Each command of the blocks that starts a program of this project."""
    for block in BLOCKS:
        for command in block.commands:
            line = re.sub(r"^sudo (?:\S*/)?", "", command.replace("\\\n", " "))
            if line.startswith(("dragoman ", "make ")) and line != "dragoman --help":
                yield pytest.param(line, id=f"{block.page}: {line[:60]}")


@pytest.mark.parametrize("line", list(shown_commands()))
def test_a_command_shown_in_the_documentation_exists(line):
    program, name, *arguments = shlex.split(line.split("|")[0].split(">")[0])
    if program == "make":
        assert re.search(rf"^{name}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
        return
    every = typer.main.get_command(app)
    if name.startswith("--"):
        assert name in {option for parameter in every.params for option in parameter.opts}
        return
    known = every.commands[name]
    if hasattr(known, "commands"):
        name, *arguments = arguments
        known = known.commands[name]
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    options = {option for parameter in known.params for option in parameter.opts}
    used = {argument.split("=")[0] for argument in own if argument.startswith("-")}
    assert used <= options | {"--help"}
    for argument in own:
        if argument.startswith("recipes/"):
            assert (ROOT / argument).exists()


def test_every_block_has_its_place_in_the_table_and_the_table_has_no_other():
    undecided = [(block.page, block.key) for block in BLOCKS if treatment_of(block) is None]
    assert undecided == []
    assert TREATMENT.keys() - {(block.page, block.key) for block in BLOCKS} == set()
    keys = [(block.page, block.key) for block in BLOCKS]
    assert len(keys) == len({*keys})


def test_what_the_table_names_is_there():
    for block in BLOCKS:
        decided = treatment_of(block)
        if isinstance(decided, Elsewhere):
            assert (ROOT / decided.test).exists()
        if isinstance(decided, Run):
            named = {*decided.skipped, *decided.stays, *decided.unfit}
            assert named - {*block.commands} == set(), block


def test_the_reader_is_told_to_activate_the_environment():
    quickstart = [block for block in BLOCKS if block.page == "docs/quickstart.md"]
    assert ACTIVATE in [command for block in quickstart for command in block.commands]


def executed(is_quick):
    """Pages with what is executed of them, in order; the long test executes the quick ones, too."""
    pages = {}
    for block in BLOCKS:
        decided = treatment_of(block)
        if isinstance(decided, Run):
            pages.setdefault(block.page, []).append((block, decided))
    for page, blocks in pages.items():
        quick = [one for one in blocks if one[1].is_quick]
        if is_quick and quick:
            yield pytest.param(quick, id=page)
        elif not is_quick and len(quick) < len(blocks):
            yield pytest.param(blocks, id=page)


@pytest.mark.parametrize("blocks", list(executed(is_quick=True)))
def test_blocks_work_as_printed(blocks, trained, tmp_path):
    run_blocks(blocks, trained, tmp_path)


@pytest.mark.cluster
@pytest.mark.timeout(1200)  # some pages start twenty commands, on machines with other work
@pytest.mark.parametrize("blocks", list(executed(is_quick=False)))
def test_long_blocks_work_as_printed(blocks, trained, tmp_path):
    run_blocks(blocks, trained, tmp_path)


def run_blocks(blocks, trained, tmp_path):
    folder = write_folder(tmp_path / "clone", trained[1])
    write_recipe_of_page(folder, ROOT / blocks[0][0].page)
    for block, decided in blocks:
        done = run_in_fresh_shell(script_of(block, decided), folder, decided.needs_lab)
        assert done.returncode == 0, f"{block.key}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


def shown_recipes():
    for page in PAGES:
        for text in re.findall(r"^```toml\n(.*?)^```", page.read_text("utf-8"), re.S | re.M):
            if text.startswith("name ="):
                yield pytest.param(text, id=page.stem)


@pytest.mark.parametrize("text", list(shown_recipes()))
def test_a_whole_recipe_on_a_page_is_understood(text, tmp_path):
    recipe = tmp_path / "shown.toml"
    recipe.write_text(text, encoding="utf-8")
    assert load_config(recipe).name
