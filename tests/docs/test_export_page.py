"""The page about export is a program: its blocks for two packages are run on a real export."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from digits_language import write_recipe
from processes import dragoman

from dragoman.decoding.translator import Translator
from dragoman.export.run import export_run
from dragoman.rundir import RunDir

PAGE = Path(__file__).parents[2] / "docs" / "export.md"


@pytest.fixture(scope="module")
def digits_run(tmp_path_factory):
    """A run that has learned enough for its translations to have words and to end."""
    folder = tmp_path_factory.mktemp("digits")
    settings = ("training.steps=120", "evaluation.every_steps=120", "checkpoints.every_steps=120")
    overrides = [argument for setting in settings for argument in ("--set", setting)]
    done = dragoman("train", write_recipe(folder), "--run", folder / "run", *overrides)
    assert done.returncode == 0, done.stderr
    return folder / "run"


@pytest.mark.parametrize("to", ["ctranslate2", "huggingface"])
def test_the_plain_package_loads_the_export_and_translates_alike(digits_run, tmp_path, to):
    if to == "huggingface":
        pytest.importorskip("transformers")
    export_run(RunDir(digits_run), to, tmp_path / "exported")
    section = re.search(rf"## {to}\n\n```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (tmp_path / "page.py").write_text(section[1], encoding="utf-8")
    assert len(section[1].strip().splitlines()) <= 8
    done = subprocess.run(
        [sys.executable, "page.py"],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    (expected,) = Translator.load(digits_run, engine="torch").translate(["one two three"])
    assert expected
    assert done.stdout.strip() == expected
