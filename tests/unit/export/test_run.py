import errno
import fcntl
import json
import os
from pathlib import Path

import pytest
from processes import dragoman, sentence

from dragoman.errors import StorageError, UserError
from dragoman.export import argos_format, ctranslate2_format
from dragoman.export import run as export_module
from dragoman.export.run import export_run
from dragoman.rundir import RunDir

FORMATS = ("ctranslate2", "huggingface", "argos", "safetensors")


@pytest.mark.parametrize("to", FORMATS)
def test_an_export_has_the_model_and_a_card_filled_from_the_run(trained, tmp_path, to):
    _, run = trained
    folder = tmp_path / "new" / "exported"
    assert export_run(RunDir(run), to, folder, license_name="cc0-1.0") == [2]
    card = (folder / "README.md").read_text()
    assert "license: cc0-1.0" in card
    assert "| train |" in card
    assert "Is it overfitting?" in card
    assert "```python" in card
    assert [path.name for path in folder.parent.iterdir()] == ["exported"]
    if to != "argos":
        assert (folder / "tokenizer.model").is_file()


def test_a_folder_with_anything_in_it_stays_as_it_is(trained, tmp_path):
    _, run = trained
    (tmp_path / "kept.txt").write_text("kept")
    for folder in (tmp_path, tmp_path / "kept.txt"):
        with pytest.raises(UserError, match=str(folder)):
            export_run(RunDir(run), "safetensors", folder)
    assert (tmp_path / "kept.txt").read_text() == "kept"
    (tmp_path / "empty").mkdir()
    export_run(RunDir(run), "safetensors", tmp_path / "empty")
    assert (tmp_path / "empty" / "config.json").is_file()


def test_the_current_folder_is_refused(trained, tmp_path, monkeypatch):
    _, run = trained
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(UserError, match="current folder"):
        export_run(RunDir(run.resolve()), "safetensors", Path())


@pytest.mark.parametrize("to", FORMATS)
def test_a_full_disk_leaves_nothing_behind(trained, tmp_path, to, monkeypatch):
    _, run = trained
    module = {"ctranslate2": ctranslate2_format, "argos": argos_format}.get(to, export_module)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module, "write_file", full)
    target = tmp_path / "places" / "exported"
    with pytest.raises(StorageError, match="No space left"):
        export_run(RunDir(run), to, target)
    assert list(target.parent.iterdir()) == []


def test_what_a_killed_export_left_goes_and_one_in_progress_stays(trained, tmp_path):
    _, run = trained
    place = tmp_path / "exports"
    left, in_progress, another = (
        place / name for name in (f".mine-{'a' * 16}", f".mine-{'b' * 16}", f".mine-too-{'c' * 16}")
    )
    for folder in (left, in_progress, another):
        folder.mkdir(parents=True)
        (folder / "model.bin").write_bytes(b"a part")
    descriptor = os.open(in_progress, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        export_run(RunDir(run), "safetensors", place / "mine")
    finally:
        os.close(descriptor)
    assert {path.name for path in place.iterdir()} == {"mine", in_progress.name, another.name}


def test_what_cannot_be_exported_is_one_sentence(trained, tmp_path):
    _, run = trained
    with pytest.raises(UserError, match=r"int8.*huggingface"):
        export_run(RunDir(run), "huggingface", tmp_path / "x", precision="int8")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="neither a run nor a checkpoint"):
        export_run(RunDir(tmp_path / "empty"), "argos", tmp_path / "x")
    refused = dragoman("export", run, "--to", "safetensors", run)
    assert "not empty" in sentence(refused, 2)


def test_a_checkpoint_of_another_version_is_refused_in_one_sentence(trained, tmp_path):
    _, run = trained
    folder = (run / "checkpoints" / "best").resolve()
    state = json.loads((folder / "state.json").read_text())
    rewrite(folder, {**state, "format": 1})
    for command in (
        ("export", run, "--to", "ctranslate2", tmp_path / "x"),
        ("translate", run, "x"),
    ):
        said = sentence(dragoman(*command), 1)
        assert "format 1" in said
    assert not (tmp_path / "x").exists()


def rewrite(folder, state):
    import hashlib

    text = json.dumps(state)
    (folder / "state.json").write_text(text)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["state.json"] = {
        "bytes": len(text.encode()),
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
