"""What a person may get wrong: one sentence that names it, the right exit code, no traceback."""

import os
import shutil
import subprocess

import pytest
import torch
from processes import dragoman
from safetensors.torch import load_file, save_file

from dragoman import config
from dragoman.checkpoints.names import point_to
from dragoman.cli import arguments
from dragoman.rundir import RunDir, read_json, sha256_of, write_json

pytestmark = pytest.mark.timeout(180)


def sentence(done, code):
    assert done.returncode == code, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr + done.stdout
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, done.stderr
    return errors[0]


def spoil(path, content):
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("spoiled", "said"),
    [
        (lambda d: (d / "train.en").unlink(), "train.en: no such file"),
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
        (["--set", "training.stepz=3"], "did you mean training.steps?"),
        (["--set", "training.steps=many"], "training.steps = 'many' should be"),
        (["--set", "tokenizer.vocabulary=100000"], "set it to at most"),
        (["--set", "training.micro_batch_tokens=4"], "raise that, or lower data.max_length"),
    ],
)
def test_settings_that_cannot_be_used(digits, tmp_path, arguments, said):
    assert said in sentence(dragoman("train", digits, "--run", tmp_path / "run", *arguments), 2)


def test_zero_workers(digits, tmp_path):
    done = dragoman("train", digits, "--run", tmp_path / "run", "--workers", 0)
    assert done.returncode == 2
    assert "--workers" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_run_directory_of_another_config(digits, tmp_path):
    run = tmp_path / "run"
    assert dragoman("train", digits, "--run", run, "--set", "training.steps=2").returncode == 0
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    said = sentence(dragoman("train", digits, "--run", run, "--set", "training.seed=2"), 2)
    assert "training.seed = 1, and now it is 2" in said
    assert before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}


def test_corrupt_shards_and_checkpoints(digits, tmp_path):
    run = tmp_path / "run"
    two_steps = ["train", digits, "--run", run, "--set", "training.steps=2"]
    assert dragoman(*two_steps).returncode == 0
    model = run / "checkpoints" / "step-00000002" / "model.safetensors"
    os.truncate(model, 100)
    said = sentence(dragoman("translate", run, "one two"), 1)
    assert "step-00000002/model.safetensors: has 100 bytes" in said
    assert "none of its 1 checkpoints is whole" in sentence(dragoman(*two_steps), 1)

    (shard,) = (tmp_path / "prepared").glob("shards-*/train-00000.tokens.npy")
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    said = sentence(dragoman("train", digits, "--run", tmp_path / "other"), 1)
    assert "train-00000.tokens.npy: sha256" in said


def test_translating_with_what_is_no_run(tmp_path):
    assert "no such run" in sentence(dragoman("translate", tmp_path / "none", "one"), 2)
    (tmp_path / "empty").mkdir()
    assert "holds no checkpoint yet" in sentence(dragoman("translate", tmp_path / "empty", "x"), 2)


def test_text_in_text_out_in_every_way(digits, tmp_path):
    run = tmp_path / "run"
    trained = dragoman("train", digits, "--run", run, "--set", "training.steps=2")
    assert trained.returncode == 0, trained.stderr
    text = tmp_path / "in.txt"
    text.write_text("one two\n\nthree\n")
    by_argument = dragoman("translate", run, "one two", "", "three")
    by_input = dragoman("translate", run, typed="one two\n\nthree\n")
    by_file = dragoman("translate", run, "--input", text, "--output", tmp_path / "out.txt")
    assert by_argument.returncode == by_input.returncode == by_file.returncode == 0
    assert by_argument.stdout == by_input.stdout == (tmp_path / "out.txt").read_text()
    assert len(by_input.stdout.split("\n")) == 4
    assert by_input.stdout.split("\n")[1] == ""

    averaged = dragoman("translate", run, "--average", 2, "one")
    assert "holds 1 checkpoints, and 2 are to be averaged" in sentence(averaged, 2)
    broken = subprocess.run(
        ["bash", "-c", f"printf 'one\\xff\\n' | {' '.join(by_input.args[:3])} translate {run}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "standard input, line 1: not UTF-8" in sentence(broken, 2)
    assert RunDir(run).status.exists()


def test_translations_go_through_links_and_pipes_and_never_over_what_is_needed(digits, tmp_path):
    run = tmp_path / "run"
    assert dragoman("train", digits, "--run", run, "--set", "training.steps=2").returncode == 0
    text, target, link = (tmp_path / name for name in ("in.txt", "target.txt", "link.txt"))
    text.write_text("one two\n")
    target.write_text("old")
    link.symlink_to(target)
    expected = dragoman("translate", run, "one two").stdout
    assert dragoman("translate", run, "-i", text, "-o", link).returncode == 0
    assert (link.is_symlink(), target.read_text()) == (True, expected)

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert dragoman("translate", run, "-i", text, "-o", pipe).returncode == 0
    assert os.read(reader, 10_000).decode() == expected
    os.close(reader)
    assert pipe.is_fifo()

    same = tmp_path / "same.txt"
    same.symlink_to(text)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    for output, code, said in (
        (tmp_path, 2, "is a folder; name a file"),
        (text, 2, "is --input as well"),
        (same, 2, "is --input as well"),
        (run / "config.toml", 2, "belongs to the run"),
        (run / "checkpoints" / "best" / "model.safetensors", 2, "belongs to the run"),
        (run / "checkpoints" / "new.txt", 2, "belongs to the run"),
        (loop, 1, "loop: "),
    ):
        assert said in sentence(dragoman("translate", run, "-i", text, "-o", output), code)
    assert text.read_text() == "one two\n"
    assert before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}


def test_checkpoints_of_another_run_are_refused(digits, tmp_path):
    run, other = tmp_path / "run", tmp_path / "other"
    two_steps = ["train", digits, "--set", "training.steps=2", "--run"]
    assert dragoman(*two_steps, run).returncode == 0
    shutil.copytree(run, other, symlinks=True)
    RunDir(other).id.write_text("ab12" * 8)
    manifest = other / "checkpoints" / "step-00000002" / "manifest.json"
    content = read_json(manifest)
    write_json(manifest, content | {"owner": content["owner"] | {"id": "ab12" * 8}})
    assert dragoman("translate", other, "one").returncode == 0
    point_to(run / "checkpoints", "best", str(other / "checkpoints" / "step-00000002"))
    assert dragoman("translate", run, "--checkpoint", "2", "one").returncode == 0
    for command in (["translate", run, "one"], ["evaluate", run, "--split", "validation"]):
        assert "belongs to another run: its id is 'ab12" in sentence(dragoman(*command), 1)


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


@pytest.mark.parametrize("workers", [1, 2])
def test_checkpoints_of_wrong_content_are_skipped_on_all_ranks_alike(digits, tmp_path, workers):
    run = tmp_path / "run"
    train = ["train", digits, "--run", run, "--workers", workers]
    assert dragoman(*train, "--set", "training.steps=10").returncode == 0
    newest = run / "checkpoints" / "step-00000010"
    crafted(newest, with_tokens_unknown)
    resumed = dragoman(*train, "--set", "training.steps=11")
    assert resumed.returncode == 0, resumed.stderr
    assert "going on after step 5" in resumed.stdout
    assert "tokens = None should be integer; checkpoint step-00000010 is skipped" in resumed.stderr

    for checkpoint in (run / "checkpoints").glob("step-*"):
        crafted(checkpoint, with_another_embedding)
    done = dragoman(*train, "--set", "training.steps=12")
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    assert "tensor 'embedding.weight' is F32 [3, 3], and should be F32 [60, 32]" in done.stderr
    assert done.stderr.count("checkpoints is whole; move the folder away") == 1
    assert "is F32 [3, 3]" in sentence(dragoman("translate", run, "one"), 1)


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
    assert said.startswith("error: 'bad\\udcff': is not valid UTF-8")


def test_a_name_that_is_too_long():
    said = sentence(dragoman("inspect", "x" * 300), 1)
    assert "File name too long; check the name" in said


def test_the_beam_of_a_command_has_the_bound_of_a_recipe():
    assert arguments.MOST_BEAM == config.MOST_BEAM
