import json
import shutil

import pytest
from recorded import events

from dragoman.checkpoints.names import MANIFEST, STATE
from dragoman.rundir import read_json, sha256_of
from dragoman.telemetry.events import (
    AttemptStarted,
    StepDone,
)
from dragoman.training.resume import Choice, Holding, choose, earlier_step_of_all


def test_nobody_has_anything():
    assert choose([None, None]) is None


def test_the_newest_step_wins_wherever_it_is():
    assert choose([Holding("a", 5, "x"), None, Holding("b", 9, "y")]) == Choice(2, 9, "y")


def test_of_equal_steps_the_lowest_rank_is_the_source():
    """Its content is the run's then, should the other one hold something else."""
    assert choose([None, Holding("a", 9, "x"), Holding("b", 9, "y")]) == Choice(1, 9, "x")


@pytest.mark.parametrize(
    ("holdings", "step"),
    [
        ([Holding("a", 8, "x", 2), Holding("b", 4, "y", 2)], 4),
        ([Holding("a", 8, "x", 2), Holding("b", 8, "x", 2)], None),
        ([Holding("a", 8, "x", 1), Holding("b", 4, "y", 2)], None),
        ([Holding("a", 8, "x"), Holding("b", 4, "y")], None),
        ([Holding("a", 8, "x", 2), None], None),
        ([None, None], None),
    ],
    ids=[
        "one host was killed before it had saved",
        "both have saved",
        "one host went on alone",
        "hosts keep nothing of their own",
        "one host is new",
        "nobody has anything",
    ],
)
def test_hosts_with_moments_of_their_own_go_back_to_a_step_that_all_have(holdings, step):
    assert earlier_step_of_all(holdings, ranks=2) == step


def test_the_loss_scale_is_resumed(run_with):
    run_with("training.steps=4", "training.precision=fp16")
    _, run = run_with("training.steps=8", "training.precision=fp16")
    whole_ending, whole = run_with("training.steps=8", "training.precision=fp16", name="whole")
    assert whole_ending.step == 8
    assert {e.step: e.loss for e in events(run, StepDone)} == {
        e.step: e.loss for e in events(whole, StepDone)
    }


def forget_what_is_new(run):
    """Makes a run look like one of a version that knew AdamW alone."""
    new = ("kind", "average_decay", "muon_rate_factor")
    lines = run.config.read_text().splitlines(keepends=True)
    start = lines.index("[optimizer]\n")
    of_optimizer = [line for line in lines[start:] if not line.startswith(new)]
    run.config.write_text("".join(lines[:start] + of_optimizer))
    folder = run.checkpoints / "step-00000005"
    state = read_json(folder / STATE)
    del state["run"]["optimizer"]
    (folder / STATE).write_text(json.dumps(state))
    list_hash_again(folder, STATE)


def list_hash_again(folder, name):
    manifest = read_json(folder / MANIFEST)
    path = folder / name
    manifest["files"][name] = {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
    (folder / MANIFEST).write_text(json.dumps(manifest))


def test_a_run_from_before_there_were_optimizers_to_choose_from_is_gone_on_with(run_with):
    _, run = run_with("training.steps=5")
    forget_what_is_new(run)
    run_with("training.steps=8")
    _, whole = run_with("training.steps=8", name="whole")
    assert [event.first_step for event in events(run, AttemptStarted)] == [1, 6]
    assert {e.step: e.loss for e in events(run, StepDone)} == {
        e.step: e.loss for e in events(whole, StepDone)
    }


@pytest.mark.parametrize("counts", [{}, {"updates": 5}], ids=["none", "of another optimizer"])
def test_a_checkpoint_without_the_counts_of_its_optimizer_is_skipped(run_with, counts, caplog):
    settings = ("optimizer.kind=schedule-free", "schedule.kind=constant")
    _, run = run_with(*settings, "training.steps=10")
    folder = run.checkpoints / "step-00000010"
    state = read_json(folder / STATE)
    assert state["run"]["optimizer"].keys() == {"k", "weight_sum", "lr_max"}
    state["run"]["optimizer"] = counts
    (folder / STATE).write_text(json.dumps(state))
    list_hash_again(folder, STATE)
    run_with(*settings, "training.steps=12")
    assert [event.first_step for event in events(run, AttemptStarted)] == [1, 6]
    assert "step-00000010 is skipped" in caplog.text


def test_drawn_subwords_are_resumed_to_the_bit(run_with):
    drawn = ("training.subword_dropout=0.2", "training.micro_batch_tokens=150")
    run_with("training.steps=7", *drawn)
    _, run = run_with("training.steps=12", *drawn)
    _, whole = run_with("training.steps=12", *drawn, name="whole")
    _, usual = run_with("training.steps=12", drawn[1], name="usual")
    losses, expected, others = (
        {e.step: (e.loss, e.tokens) for e in events(each, StepDone)} for each in (run, whole, usual)
    )
    assert len(events(run, AttemptStarted)) == 2
    assert losses == expected
    assert all(others[step] != losses[step] for step in losses)
    weights = [
        (each.checkpoints / "latest" / "model.safetensors").read_bytes() for each in (run, whole)
    ]
    assert weights[0] == weights[1]


def test_checkpoints_of_another_run_are_neither_taken_nor_removed(run_with, tmp_path, caplog):
    """Of the same data, model and batches: only the id tells them apart."""
    caplog.set_level("INFO", "dragoman")
    _, other = run_with("training.steps=20", name="other")
    _, run = run_with("training.steps=5")
    foreign = run.checkpoints / "step-00000020"
    shutil.copytree(other.checkpoints / foreign.name, foreign)
    ending, _ = run_with("training.steps=8", "checkpoints.keep_last=1")
    assert ending.step == 8
    assert [event.first_step for event in events(run, AttemptStarted)] == [1, 6]
    assert foreign.is_dir()
    assert "step-00000020: belongs to another run: its id is" in caplog.text


def test_a_checkpoint_from_before_there_were_ids_is_gone_on_from(run_with):
    _, run = run_with("training.steps=5")
    manifest = run.checkpoints / "step-00000005" / "manifest.json"
    content = read_json(manifest)
    del content["owner"]["id"]
    manifest.write_text(json.dumps(content))
    run.id.unlink()
    run_with("training.steps=8")
    assert [event.first_step for event in events(run, AttemptStarted)] == [1, 6]
