import json
import os
import shutil

import pytest
from processes import dragoman

from dragoman.cli.inspect import show_data
from dragoman.config import load_config
from dragoman.preparation import prepare

pytestmark = pytest.mark.timeout(180)


def test_everything_that_dragoman_makes_can_be_inspected(digits, tmp_path):
    run = tmp_path / "run"
    assert dragoman("train", digits, "--run", run, "--set", "training.steps=2").returncode == 0

    data = dragoman("inspect", tmp_path / "prepared")
    assert "train: 800 of 800 pairs" in data.stdout
    assert "60 pieces" in data.stdout
    passport = json.loads(dragoman("inspect", tmp_path / "prepared", "--json").stdout)
    assert passport["splits"]["train"]["pairs_kept"] == 800

    checkpoint = run / "checkpoints" / "best"
    shown = dragoman("inspect", checkpoint).stdout
    assert "step-00000002" in shown
    assert "DAMAGED" not in shown
    assert "model.safetensors" in shown
    copied = shutil.copytree(checkpoint, tmp_path / "mine")
    assert "model.safetensors" in dragoman("inspect", copied).stdout
    os.truncate(checkpoint / "model.safetensors", 10)
    assert "DAMAGED" in dragoman("inspect", checkpoint).stdout

    shown = dragoman("inspect", run).stdout
    assert "finished, step 2" in shown
    assert "checkpoints/step-00000002" in shown

    nothing = dragoman("inspect", tmp_path)
    assert nothing.returncode == 2
    assert "is neither prepared data nor a run nor a checkpoint" in nothing.stderr


def test_duplicates_between_sources_are_shown_with_the_weight_that_they_keep(digits, capsys):
    sources = ",".join(
        f'{{kind="text",source="{side}.en",target="{side}.de",weight={weight}}}'
        for side, weight in (("train", 1.0), ("valid", 3.0), ("train", 1.0))
    )
    settings = [f"data.train=[{sources}]", "cleaning.duplicates=near", "cleaning.drop_leaks=false"]
    show_data(prepare(load_config(digits, settings)))
    shown = capsys.readouterr().out
    assert "duplicates of pairs of train.en + train.de\n" in shown
    assert "duplicates of pairs of train.en + train.de, which keep the larger weight, 3" in shown


def test_of_three_sources_the_weight_of_a_duplicate_may_be_that_of_the_third(digits, capsys):
    sources = ",".join(
        f'{{kind="text",source="train.en",target="train.de",weight={weight}}}'
        for weight in (0.5, 3.0, 2.0)
    )
    settings = [f"data.train=[{sources}]", "cleaning.duplicates=near", "cleaning.drop_leaks=false"]
    show_data(prepare(load_config(digits, settings)))
    lines = [line for line in capsys.readouterr().out.splitlines() if "larger weight" in line]
    assert lines[0].endswith("which keep the larger weight, 3")
    # Those of the third source are duplicates of the first, which has the second's weight by now.
    assert not any(line.endswith("weight, 2") for line in lines)
