import os

import pytest
import torch
from safetensors.torch import save_file
from unit.checkpoints.saving import save

from dragoman.checkpoints.checkpoint import Checkpoint, average, check_tensors
from dragoman.checkpoints.finding import verify
from dragoman.checkpoints.names import MANIFEST
from dragoman.errors import CorruptFileError, UserError
from dragoman.rundir import read_json, write_json


def test_the_average_is_the_mean_of_the_weights(tmp_path):
    checkpoints = [save(tmp_path, step, value) for step, value in ((1, 1.0), (2, 2.0), (3, 6.0))]
    assert torch.equal(average(checkpoints)["weight"], torch.full((3, 2), 3.0))
    with pytest.raises(UserError, match="average"):
        average([])


def test_models_of_other_shapes_are_not_averaged(tmp_path):
    one, other = save(tmp_path, 1), save(tmp_path, 2)
    save_file({"weight": torch.zeros(2, 2)}, other.folder / "model.safetensors")
    with pytest.raises(UserError, match="step-00000002"):
        average([one, other])


def test_the_step_is_that_of_the_name_or_of_the_state_where_a_copy_has_another(tmp_path):
    assert Checkpoint(tmp_path / ".replaced-step-00000010").step == 10
    copied = Checkpoint(save(tmp_path, 7).folder.rename(tmp_path / "mine"))
    assert copied.step == 7
    (tmp_path / "models").mkdir()
    with pytest.raises(UserError, match=r"models: is not a checkpoint"):
        _ = Checkpoint(tmp_path / "models").step


def test_a_renamed_copy_is_verified_like_any_other(tmp_path):
    copied = Checkpoint(save(tmp_path, 7).folder.rename(tmp_path / "mine"))
    verify(copied)
    manifest = read_json(copied.folder / MANIFEST)
    write_json(copied.folder / MANIFEST, manifest | {"step": 8})
    with pytest.raises(CorruptFileError, match=r"step 7.* step 8"):
        verify(copied)
    write_json(copied.folder / MANIFEST, manifest)
    os.truncate(copied.folder / "model.safetensors", 10)
    with pytest.raises(CorruptFileError, match=r"model\.safetensors"):
        verify(copied)


SHAPES = {"weight": (2, 3)}


@pytest.mark.parametrize(
    ("tensors", "fact"),
    [
        ({}, "'weight'"),
        ({"weight": torch.zeros(2, 3), "more": torch.zeros(1)}, "'more'"),
        ({"weight": torch.zeros(3, 2)}, r"\[3, 2\].*\[2, 3\]"),
        ({"weight": torch.zeros(2, 3, dtype=torch.float16)}, "F16"),
        ({"weight": torch.full((2, 3), torch.nan)}, "not finite"),
    ],
    ids=["missing", "unknown", "another shape", "another type", "not finite"],
)
def test_a_file_must_hold_exactly_the_tensors_of_the_model(tmp_path, tensors, fact):
    path = tmp_path / "model.safetensors"
    save_file(tensors, path)
    with pytest.raises(CorruptFileError, match=fact):
        check_tensors(path, SHAPES)


def test_the_right_tensors_pass_and_none_where_none_are_needed(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"weight": torch.ones(2, 3)}, path)
    check_tensors(path, SHAPES)
    save_file({}, path)
    check_tensors(path, SHAPES, may_be_empty=True)
    path.write_bytes(b"garbage")
    with pytest.raises(CorruptFileError, match=r"model\.safetensors"):
        check_tensors(path, SHAPES)
