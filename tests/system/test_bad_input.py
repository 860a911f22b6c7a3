"""What a person may get wrong: one sentence that names it, the right exit code, no traceback."""

import os
import re
import shutil

import pytest
import torch
from processes import dragoman, sentence
from safetensors.torch import load_file, save_file

from dragoman.checkpoints.names import point_to
from dragoman.rundir import RunDir, read_json, sha256_of, write_json

pytestmark = pytest.mark.timeout(180)


def spoil(path, content):
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("spoiled", "said"),
    [
        (lambda d: (d / "train.en").unlink(), "train.en"),
        (lambda d: spoil(d / "train.en", b""), "train.en ends after line 0"),
        (lambda d: spoil(d / "valid.de", b"eins\n"), "valid.de ends after line 1"),
        (lambda d: spoil(d / "train.de", b"\xff\n"), "train.de, line 1: not UTF-8"),
        (lambda d: spoil(d / "train.en", b"one\x00two\n"), "train.en, line 1"),
        (lambda d: spoil(d / "train.en", b"one\n" + b"x" * 11_000_000), "train.en, line 2"),
        (lambda d: spoil(d / "train.en", b" \n" * 800), "no training pair is left"),
    ],
    ids=["missing", "empty", "misaligned", "not UTF-8", "NUL", "10 MB line", "blank side"],
)
def test_text_that_cannot_be_used(digits, tmp_path, spoiled, said):
    spoiled(digits.parent)
    assert said in sentence(dragoman("train", digits, "--run", tmp_path / "run"), 2)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "training.stepz=3"], "training.steps?"),
        (["--set", "training.steps=many"], "training.steps = 'many' should be"),
        (["--set", "tokenizer.vocabulary=100000"], "tokenizer.vocabulary"),
        (["--set", "training.micro_batch_tokens=4"], "data.max_length"),
    ],
)
def test_settings_that_cannot_be_used(digits, tmp_path, arguments, said):
    assert said in sentence(dragoman("train", digits, "--run", tmp_path / "run", *arguments), 2)


@pytest.mark.parametrize(
    ("settings", "keys"),
    [
        (["optimizer.kind=schedule-free"], ["optimizer.kind", "schedule.kind"]),
        (
            ["optimizer.kind=muon", "training.sharding=full"],
            ["optimizer.kind", "training.sharding"],
        ),
    ],
)
def test_optimizers_that_do_not_go_with_the_rest(digits, tmp_path, settings, keys):
    words = [word for setting in settings for word in ("--set", setting)]
    before = sorted(tmp_path.rglob("*"))
    said = sentence(dragoman("train", digits, "--run", tmp_path / "run", *words), 2)
    assert all(key in said for key in keys)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.cluster)])
@pytest.mark.parametrize("tokens", [5, 12])
def test_what_only_the_data_can_refuse_leaves_no_run_behind(digits, tmp_path, workers, tokens):
    """And so the advice can be followed with the same command."""
    run = tmp_path / "run"
    command = ["train", digits, "--run", run, "--workers", workers, "--set", "model.dropout=0.1"]
    command += ["--set", "training.r_drop=1", "--set", "training.steps=1"]
    said = sentence(dragoman(*command, "--set", f"training.micro_batch_tokens={tokens}"), code=2)
    for fact in ("training.r_drop = 1", f"training.micro_batch_tokens = {tokens}; raise that"):
        assert fact in said
    assert not run.exists()
    done = dragoman(*command, "--set", "training.micro_batch_tokens=200")
    assert done.returncode == 0, done.stderr


def test_a_run_that_never_began_is_taken_over_and_one_that_did_is_not(digits, tmp_path):
    run = RunDir(tmp_path / "run")
    command = ["train", digits, "--run", run.root, "--set", "training.steps=1"]
    assert dragoman(*command).returncode == 0
    said = sentence(dragoman(*command, "--set", "training.seed=5"), code=2)
    assert "was started with training.seed = 1, and now it is 5" in said
    for folder in (run.events, run.checkpoints):
        shutil.rmtree(folder)
    run.manifest.unlink()
    done = dragoman(*command, "--set", "training.seed=5")
    assert done.returncode == 0, done.stderr


def test_zero_workers(digits, tmp_path):
    done = dragoman("train", digits, "--run", tmp_path / "run", "--workers", 0)
    assert done.returncode == 2
    assert "--workers" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_run_directory_of_another_config(trained):
    digits, run = trained
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    said = sentence(dragoman("train", digits, "--run", run, "--set", "training.seed=2"), 2)
    assert "training.seed = 1" in said
    assert before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}


def test_corrupt_shards_and_checkpoints(digits, tmp_path):
    run = tmp_path / "run"
    two_steps = ["train", digits, "--run", run, "--set", "training.steps=2"]
    assert dragoman(*two_steps).returncode == 0
    model = run / "checkpoints" / "step-00000002" / "model.safetensors"
    os.truncate(model, 100)
    said = sentence(dragoman("translate", run, "one two"), 1)
    assert "step-00000002/model.safetensors: has 100 bytes" in said
    assert "checkpoints" in sentence(dragoman(*two_steps), 1)

    (shard,) = (tmp_path / "prepared").glob("shards-*/train-00000.tokens.npy")
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    said = sentence(dragoman("train", digits, "--run", tmp_path / "other"), 1)
    assert "train-00000.tokens.npy" in said


def test_checkpoints_of_another_run_are_refused(trained, tmp_path):
    _, run = trained
    other = tmp_path / "other"
    shutil.copytree(run, other, symlinks=True)
    RunDir(other).id.write_text("ab12" * 8)
    manifest = other / "checkpoints" / "step-00000002" / "manifest.json"
    content = read_json(manifest)
    write_json(manifest, content | {"owner": content["owner"] | {"id": "ab12" * 8}})
    assert dragoman("translate", other, "one").returncode == 0
    point_to(run / "checkpoints", "best", str(other / "checkpoints" / "step-00000002"))
    assert dragoman("translate", run, "--checkpoint", "2", "one").returncode == 0
    for command in (["translate", run, "one"], ["evaluate", run, "--split", "validation"]):
        assert "'ab12" in sentence(dragoman(*command), 1)


def crafted(checkpoint, change):
    """A checkpoint whose content is wrong and whose hashes are right."""
    change(checkpoint)
    manifest = read_json(checkpoint / "manifest.json")
    for name in manifest["files"]:
        size = (checkpoint / name).stat().st_size
        manifest["files"][name] = {"bytes": size, "sha256": sha256_of(checkpoint / name)}
    write_json(checkpoint / "manifest.json", manifest)


def with_tokens_unknown(checkpoint):
    state = read_json(checkpoint / "state.json")
    state["run"]["tokens"] = None
    write_json(checkpoint / "state.json", state)


def with_another_embedding(checkpoint):
    weights = load_file(checkpoint / "model.safetensors")
    weights["embedding.weight"] = torch.zeros(3, 3)
    save_file(weights, checkpoint / "model.safetensors")


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.cluster), 2])
def test_checkpoints_of_wrong_content_are_skipped_on_all_ranks_alike(digits, tmp_path, workers):
    run = tmp_path / "run"
    train = ["train", digits, "--run", run, "--workers", workers]
    assert dragoman(*train, "--set", "training.steps=10").returncode == 0
    newest = run / "checkpoints" / "step-00000010"
    crafted(newest, with_tokens_unknown)
    resumed = dragoman(*train, "--set", "training.steps=11")
    assert resumed.returncode == 0, resumed.stderr
    assert "going on after step 5" in resumed.stdout
    assert "tokens = None" in resumed.stderr
    assert "step-00000010" in resumed.stderr

    for checkpoint in (run / "checkpoints").glob("step-*"):
        crafted(checkpoint, with_another_embedding)
    done = dragoman(*train, "--set", "training.steps=12")
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    assert re.search(r"embedding\.weight.*\[3, 3\].*\[60, 32\]", done.stderr)
    assert done.stderr.count("error: ") == 1
    assert "[3, 3]" in sentence(dragoman("translate", run, "one"), 1)


def test_a_model_that_does_not_fit_into_memory_is_refused_before_anything_is_written(
    digits, tmp_path
):
    huge = ["model.width=65536", "model.filter=1000000", "model.encoder_layers=1000"]
    changes = [part for change in huge for part in ("--set", change)]
    done = dragoman("train", digits, "--run", tmp_path / "run", *changes)
    assert "GB of memory" in sentence(done, 2)
    assert not (tmp_path / "run").exists()
    assert not (tmp_path / "prepared").exists()


@pytest.mark.parametrize("command", ["config", "inspect", "translate", "train", "report"])
def test_a_name_that_is_not_utf_8(command):
    """As a shell hands over the bytes of a file name; Python has surrogates for them."""
    said = sentence(dragoman(command, "bad\udcff"), 2)
    assert "'bad\\udcff'" in said
    assert "UTF-8" in said


def test_a_name_that_is_too_long():
    said = sentence(dragoman("inspect", "x" * 300), 1)
    assert "File name too long" in said
