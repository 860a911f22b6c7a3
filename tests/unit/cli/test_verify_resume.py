"""What needs no training; tests/faults has the rest."""

import pytest
from processes import dragoman, sentence


@pytest.mark.parametrize(
    ("wrong", "fact"), [(["--set", "training.stepz=3"], "training.stepz"), (["--seed", "1"], None)]
)
def test_a_recipe_that_cannot_be_verified_leaves_no_folder_behind(
    digits, tmp_path, monkeypatch, wrong, fact
):
    workshop = tmp_path / "workshop"
    workshop.mkdir()
    monkeypatch.setenv("TMPDIR", str(workshop))
    if fact is None:
        (digits.parent / "train.en").unlink()
        fact = "train.en"
    assert fact in sentence(dragoman("verify-resume", digits, *wrong), 2)
    assert list(workshop.glob("dragoman-verify-*")) == []


def test_too_few_steps_are_wrong_usage(digits):
    done = dragoman("verify-resume", digits, "--steps", 4)
    assert done.returncode == 2
    assert "--steps" in done.stderr
