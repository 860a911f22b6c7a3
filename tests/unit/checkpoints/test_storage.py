import shutil

import pytest
import torch

from dragoman.checkpoints.storage import (
    Checkpoint,
    all_checkpoints,
    average,
    find_checkpoint,
    newest_whole,
    point_to,
    prune,
    save_checkpoint,
    verify,
)
from dragoman.errors import CorruptFileError, RunError, StorageError, UserError


def save(root, step, value=1.0):
    return save_checkpoint(
        root,
        step,
        model={"weight": torch.full((3, 2), value)},
        optimizer={"weight|exp_avg": torch.full((3, 2), value)},
        state={"run": {"step": step}},
        tokenizer_model=b"pieces",
    )


def damage(checkpoint, kind):
    path = checkpoint.folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    if kind == "truncated":
        path.write_bytes(content[:-5])
    elif kind == "bit flipped":
        content[-1] ^= 4
        path.write_bytes(content)
    elif kind == "file missing":
        path.unlink()
    elif kind == "manifest torn":
        (checkpoint.folder / "manifest.json").write_text('{"files": {')
    elif kind == "manifest missing":
        (checkpoint.folder / "manifest.json").unlink()
    elif kind == "empty folder":
        shutil.rmtree(checkpoint.folder)
        checkpoint.folder.mkdir()
    elif kind == "of another step":
        shutil.rmtree(checkpoint.folder)
        shutil.copytree(save(checkpoint.folder.parent / "x", 3).folder, checkpoint.folder)


DAMAGES = [
    "truncated",
    "bit flipped",
    "file missing",
    "manifest torn",
    "manifest missing",
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
    tmp_path, kind, capsys
):
    save(tmp_path, 5)
    damage(save(tmp_path, 10), kind)
    assert newest_whole(tmp_path).step == 5
    assert "step-00000010 is skipped" in capsys.readouterr().err


def test_when_none_is_whole_the_run_does_not_quietly_start_over(tmp_path):
    damage(save(tmp_path, 5), "truncated")
    with pytest.raises(RunError, match="none of its 1 checkpoints is whole"):
        newest_whole(tmp_path)
    assert newest_whole(tmp_path / "empty") is None


def test_an_unfinished_save_is_never_seen_and_is_swept_up(tmp_path):
    save(tmp_path, 5)
    shutil.copytree(tmp_path / "step-00000005", tmp_path / ".unfinished-step-00000010-1")
    assert [c.step for c in all_checkpoints(tmp_path)] == [5]
    prune(tmp_path, keep=[5])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000005"]


def test_a_save_that_fails_leaves_the_older_ones_alone(tmp_path, monkeypatch):
    save(tmp_path, 5)

    def torn(tensors, path):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dragoman.checkpoints.storage.save_file", torn)
    with pytest.raises(StorageError, match="No space left on device"):
        save(tmp_path, 10)
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000005"]
    verify(Checkpoint(tmp_path / "step-00000005"))


def test_links_name_a_checkpoint_and_are_verified_when_followed(tmp_path):
    for step in (5, 10, 15):
        save(tmp_path, step)
    point_to(tmp_path, "best", Checkpoint(tmp_path / "step-00000005"))
    point_to(tmp_path, "best", Checkpoint(tmp_path / "step-00000010"))
    point_to(tmp_path, "latest", Checkpoint(tmp_path / "step-00000015"))
    assert find_checkpoint(tmp_path, "best").step == 10
    assert find_checkpoint(tmp_path, "latest").step == 15
    assert find_checkpoint(tmp_path, "5").step == 5
    damage(find_checkpoint(tmp_path, "best"), "bit flipped")
    with pytest.raises(CorruptFileError, match=r"step-00000010/model\.safetensors"):
        find_checkpoint(tmp_path, "best")


def test_a_checkpoint_that_is_not_there_is_explained(tmp_path):
    with pytest.raises(UserError, match="holds no checkpoint yet"):
        find_checkpoint(tmp_path, "best")
    save(tmp_path, 5)
    with pytest.raises(UserError, match="no checkpoint of step 7; there are: 5"):
        find_checkpoint(tmp_path, "7")
    with pytest.raises(UserError, match="should be best, latest or the number"):
        find_checkpoint(tmp_path, "newest")


def test_pruning_keeps_what_it_is_told_to(tmp_path):
    for step in (5, 10, 15, 20):
        save(tmp_path, step)
    assert prune(tmp_path, keep=[10, 20]) == [5, 15]
    assert [c.step for c in all_checkpoints(tmp_path)] == [10, 20]


def test_the_average_is_the_mean_of_the_weights(tmp_path):
    checkpoints = [save(tmp_path, step, value) for step, value in ((1, 1.0), (2, 2.0), (3, 6.0))]
    assert torch.equal(average(checkpoints)["weight"], torch.full((3, 2), 3.0))
    with pytest.raises(UserError, match="no checkpoint to average"):
        average([])
