import errno
import json
import os
import shutil

import pytest
import torch
from safetensors.torch import save_file
from unit.checkpoints.saving import damage, save

from dragoman.checkpoints import schema, storage
from dragoman.checkpoints.checkpoint import Checkpoint
from dragoman.checkpoints.finding import (
    all_checkpoints,
    find_checkpoint,
    find_equal,
    newest_whole,
    verify,
)
from dragoman.checkpoints.names import FORMAT, point_to
from dragoman.checkpoints.storage import prune
from dragoman.errors import RunError, StorageError

DAMAGES = [
    "truncated",
    "bit flipped",
    "file missing",
    "manifest torn",
    "manifest missing",
    "manifest of nothing",
    "manifest of something else",
    "optimizer of another step",
    "empty folder",
    "of another step",
]


def test_what_is_saved_is_what_is_loaded(tmp_path):
    checkpoint = save(tmp_path, 5, value=2.5)
    verify(checkpoint)
    assert checkpoint.step == 5
    assert torch.equal(checkpoint.model()["weight"], torch.full((3, 2), 2.5))
    assert torch.equal(checkpoint.optimizer()["weight|exp_avg"], torch.full((3, 2), 2.5))
    assert checkpoint.state()["run"] == {"step": 5}
    assert checkpoint.tokenizer_model() == b"pieces"
    assert set(checkpoint.sizes()) == {
        "manifest.json",
        "model.safetensors",
        "optimizer.safetensors",
        "state.json",
        "tokenizer.model",
    }


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_checkpoint_is_skipped_with_its_name_and_the_one_before_taken(
    tmp_path, kind, caplog
):
    save(tmp_path, 5)
    damage(save(tmp_path, 10), kind)
    assert newest_whole(tmp_path).step == 5
    assert "step-00000010 is skipped" in caplog.text


def test_an_unfinished_save_is_never_seen_and_is_swept_up(tmp_path):
    save(tmp_path, 5)
    shutil.copytree(tmp_path / "step-00000005", tmp_path / ".unfinished-step-00000010-1")
    assert [c.step for c in all_checkpoints(tmp_path)] == [5]
    prune(tmp_path, [5], owner={})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000005"]


def test_a_save_that_fails_leaves_the_older_ones_alone(tmp_path, monkeypatch):
    save(tmp_path, 5)

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left on device"):
        save(tmp_path, 10)
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000005"]
    verify(Checkpoint(tmp_path / "step-00000005"))


def test_the_newest_is_looked_for_in_several_places(tmp_path, caplog):
    disk, memory = tmp_path / "disk", tmp_path / "memory"
    assert newest_whole([disk, memory]) is None
    save(disk, 5)
    save(memory, 10)
    assert newest_whole([disk, memory]).folder == memory / "step-00000010"
    save(disk, 10)
    assert newest_whole([disk, memory]).folder == disk / "step-00000010"
    assert newest_whole([memory, disk]).folder == memory / "step-00000010"
    assert caplog.text == ""
    damage(Checkpoint(disk / "step-00000010"), "truncated")
    assert newest_whole([disk, memory]).folder == memory / "step-00000010"
    assert f"{disk}/step-00000010/model.safetensors" in caplog.text
    damage(Checkpoint(memory / "step-00000010"), "truncated")
    assert newest_whole([disk, memory]).folder == disk / "step-00000005"


def test_a_place_that_cannot_be_listed_is_skipped_but_never_taken_for_an_empty_one(
    tmp_path, monkeypatch, caplog
):
    disk, broken = tmp_path / "disk", tmp_path / "broken"
    save(disk, 5)
    save(broken, 10)
    real = type(tmp_path).iterdir

    def iterdir(path):
        if path == broken:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(path)

    monkeypatch.setattr(type(tmp_path), "iterdir", iterdir)
    assert newest_whole([disk, broken]).step == 5
    assert f"{broken}: cannot be read" in caplog.text
    with pytest.raises(RunError, match="cannot be read; repair the disk"):
        newest_whole(broken)


def test_a_file_that_cannot_be_read_counts_as_torn(tmp_path, monkeypatch, caplog):
    save(tmp_path, 5)
    save(tmp_path, 10)

    def sha256_of(path):
        if "step-00000010" in str(path):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(path)

    real = schema.sha256_of
    monkeypatch.setattr(schema, "sha256_of", sha256_of)
    assert newest_whole(tmp_path).step == 5
    assert "Input/output error" in caplog.text


def test_a_checkpoint_of_another_run_is_skipped_with_its_name(tmp_path, caplog):
    save(tmp_path, 5, owner={"settings": "a1", "data": "d1"})
    save(tmp_path, 10, owner={"settings": "b2", "data": "d1"})
    assert newest_whole(tmp_path, owner={"settings": "a1", "data": "d1"}).step == 5
    said = caplog.text
    assert "step-00000010: belongs to another run: its settings is 'b2'" in said
    assert newest_whole(tmp_path).step == 10
    # What a manifest says nothing about is no difference: older ones had no owner.
    save(tmp_path, 15)
    assert newest_whole(tmp_path, owner={"settings": "a1"}).step == 15


def test_a_folder_that_was_renamed_and_not_yet_replaced_is_still_its_steps_checkpoint(tmp_path):
    save(tmp_path, 5)
    whole = save(tmp_path, 10, value=7.0)
    manifest = whole.manifest_sha256()
    hidden = tmp_path / ".replaced-step-00000010"
    whole.folder.rename(hidden)
    point_to(tmp_path, "latest", whole.folder.name)
    for found in (
        newest_whole(tmp_path),
        find_checkpoint(tmp_path, "latest"),
        find_checkpoint(tmp_path, "10"),
        all_checkpoints(tmp_path)[-1],
        find_equal([tmp_path / "elsewhere", tmp_path], 10, manifest),
    ):
        assert found.folder == hidden
        assert found.step == 10
    prune(tmp_path, [10], owner={})
    assert newest_whole(tmp_path).folder == tmp_path / "step-00000010"
    assert torch.equal(newest_whole(tmp_path).model()["weight"], torch.full((3, 2), 7.0))


def test_a_replacement_that_is_torn_gives_way_to_what_it_replaced(tmp_path, caplog):
    save(tmp_path, 10, value=1.0).folder.rename(tmp_path / ".replaced-step-00000010")
    damage(save(tmp_path / "x", 10, value=2.0), "truncated")
    (tmp_path / "x" / "step-00000010").rename(tmp_path / "step-00000010")
    assert newest_whole(tmp_path).folder.name == ".replaced-step-00000010"
    assert "checkpoint step-00000010 is skipped" in caplog.text


def test_a_save_of_the_same_step_takes_the_place_of_the_one_before(tmp_path):
    save(tmp_path, 10, value=1.0)
    save(tmp_path, 10, value=2.0)
    prune(tmp_path, [10], owner={})
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000010"]
    assert torch.equal(newest_whole(tmp_path).model()["weight"], torch.full((3, 2), 2.0))


def test_a_replacement_that_fails_leaves_the_old_one_under_its_name(tmp_path, monkeypatch):
    save(tmp_path, 10, value=1.0)
    real = type(tmp_path).rename

    def rename(path, target):
        if path.name.startswith(".unfinished-"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(path, target)

    monkeypatch.setattr(type(tmp_path), "rename", rename)
    with pytest.raises(StorageError, match="Input/output error while saving a checkpoint"):
        save(tmp_path, 10, value=2.0)
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000010"]
    assert torch.equal(newest_whole(tmp_path).model()["weight"], torch.full((3, 2), 1.0))


def test_what_the_library_has_written_is_read_as_before(tmp_path):
    """Checkpoints of releases whose manifests had only files in them."""
    folder = save(tmp_path, 5, value=2.0).folder
    save_file({"weight": torch.full((3, 2), 4.0)}, folder / "model.safetensors")
    names = ["model.safetensors", "optimizer.safetensors", "state.json", "tokenizer.model"]
    files = {
        name: {
            "bytes": (folder / name).stat().st_size,
            "sha256": schema.sha256_of(folder / name),
        }
        for name in names
    }
    (folder / "manifest.json").write_text(json.dumps({"files": files}))
    newest = newest_whole(tmp_path, owner={"settings": "a1"})
    assert torch.equal(newest.model()["weight"], torch.full((3, 2), 4.0))


def test_pruning_keeps_what_it_is_told_to(tmp_path):
    for step in (5, 10, 15, 20):
        save(tmp_path, step)
    assert prune(tmp_path, [10, 20], owner={}) == [5, 15]
    assert [c.step for c in all_checkpoints(tmp_path)] == [10, 20]


def test_what_belongs_to_another_run_is_not_ours_to_remove(tmp_path):
    for step, settings in ((5, "a1"), (10, "b2"), (15, "a1")):
        save(tmp_path, step, owner={"settings": settings})
    assert prune(tmp_path, [15], owner={"settings": "a1"}) == [5]
    assert [c.step for c in all_checkpoints(tmp_path)] == [10, 15]


def test_a_checkpoint_of_a_newer_version_is_skipped_with_what_to_do(tmp_path, monkeypatch, caplog):
    save(tmp_path, 5)
    with monkeypatch.context() as newer:
        newer.setattr(storage, "FORMAT", FORMAT + 1)
        save(tmp_path, 10)
    assert newest_whole(tmp_path).step == 5
    said = caplog.text
    assert f"has format {FORMAT + 1}, and this Dragoman reads up to {FORMAT}; update it" in said
