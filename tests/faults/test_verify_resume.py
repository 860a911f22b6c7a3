"""`dragoman verify-resume` on real processes: it finds what is equal, and what is not."""

import re

import pytest
from processes import dragoman

pytestmark = pytest.mark.timeout(400)

# Python runs this at its start in every process, ours included; only trainings are changed.
FORGETFUL = """
import sys
if "train" in sys.orig_argv:
    import dragoman.training.optimizers as optimizers
    optimizers.load_optimizer_tensors = lambda optimizer, model, saved: None
"""


@pytest.fixture
def workshop(tmp_path, monkeypatch):
    """Where temporary folders are made."""
    folder = tmp_path / "workshop"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def test_a_killed_run_goes_on_as_if_nothing_had_happened(digits, workshop):
    done = dragoman("verify-resume", digits, "--seed", 3)
    assert done.returncode == 0, done.stdout + done.stderr
    said = re.search(
        r"^equal: 24 losses and (\d+) tensors, killed at step (\d+), resumed from step (\d+)$",
        done.stdout,
        re.M,
    )
    assert said, done.stdout
    tensors, killed_at, resumed_from = map(int, said.groups())
    assert tensors > 50
    assert 4 <= resumed_from <= killed_at <= 24
    assert f"SIGKILL at step {killed_at} (step 12 was drawn with seed 3)" in done.stdout
    assert not list(workshop.glob("dragoman-verify-*"))


@pytest.mark.cluster
def test_a_resume_that_forgets_the_optimizer_is_found_out(digits, workshop, tmp_path, monkeypatch):
    (tmp_path / "python").mkdir()
    (tmp_path / "python" / "sitecustomize.py").write_text(FORGETFUL)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "python"))
    done = dragoman("verify-resume", digits, "--seed", 3)
    assert done.returncode == 3, done.stdout + done.stderr
    assert re.search(r"^unequal: \d+ of 24 losses, first that of step \d+", done.stdout, re.M)
    assert " tensors, among them " in done.stdout
    (kept,) = workshop.glob("dragoman-verify-*")
    assert f"both runs are kept in {kept}" in done.stdout
    assert (kept / "straight").is_dir()


def test_a_recipe_that_cannot_be_trained_is_a_failure_with_its_own_sentence(digits, workshop):
    done = dragoman("verify-resume", digits, "--set", "training.micro_batch_tokens=4")
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "raise that, or lower data.max_length" in done.stderr
    assert "Traceback" not in done.stderr
