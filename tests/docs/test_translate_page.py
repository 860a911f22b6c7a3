"""The page about translating is a program: its shell blocks are run in order, with a small run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "translate.md"


@pytest.mark.cluster  # a minute: each command loads its model
@pytest.mark.timeout(600)
def test_the_commands_of_the_page_run_and_write_what_it_shows(trained, tmp_path):
    """The words are those of another model, so lines, columns and keys are compared."""
    _, run = trained
    folder = tmp_path / "page"
    (folder / "runs").mkdir(parents=True)
    for name in ("demo", "other"):
        (folder / "runs" / name).symlink_to(run)
    (folder / "bin").mkdir()
    command = folder / "bin" / "dragoman"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m dragoman "$@"\n')
    command.chmod(0o755)
    blocks = re.findall(
        r"```sh\n(.*?)```(?:\n\n```(?:text|json)\n(.*?)```)?", PAGE.read_text("utf-8"), re.DOTALL
    )
    assert len(blocks) >= 10
    for block, shown in blocks:
        # What the small run has, and what its tokenizer can write.
        commands = re.sub(r"--checkpoint \d+", "--checkpoint 2", block).replace("Karte", "drei")
        done = subprocess.run(
            ["bash", "-e", "-u", "-o", "pipefail", "-c", commands],
            cwd=folder,
            env=os.environ | {"OMP_NUM_THREADS": "1", "PATH": f"{folder}/bin:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (commands, done.stderr)
        kept, expected = form(done.stdout), form(shown)
        if "wrapped" in commands or "--n-best" in commands:  # as many lines as the words make
            kept, expected = set(kept), set(expected)
        assert kept == expected, (commands, done.stdout)
    (program,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    printed = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True
    )
    assert printed.stdout.startswith("- ")


def form(output):
    """Of each line: its margin, its columns, and its keys if it is JSON."""
    return [
        (re.match(r"[\s>#-]*", line)[0], line.count("\t"), *re.findall(r'"(\w+)":', line))
        for line in output.splitlines()
    ]
