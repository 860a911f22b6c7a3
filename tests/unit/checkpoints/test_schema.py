import json

import pytest
from unit.checkpoints.saving import save

from dragoman.checkpoints.schema import check_file, is_whole, read_manifest, read_state
from dragoman.config import ModelSettings
from dragoman.errors import CorruptFileError


def test_a_manifest_says_of_which_step_and_whose_the_files_are(tmp_path):
    folder = save(tmp_path, 5, owner={"id": "a1"}).folder
    manifest = read_manifest(folder)
    assert (manifest.step, manifest.owner) == (5, {"id": "a1"})
    for name, saved in manifest.files.items():
        assert is_whole(folder / name, saved)


@pytest.mark.parametrize(
    ("damage", "fact"),
    [
        (lambda path: path.unlink(), "missing"),
        (lambda path: path.write_bytes(b"short"), "5 bytes instead of 6"),
        (lambda path: path.write_bytes(b"Pieces"), "content"),
    ],
)
def test_a_file_has_the_size_and_the_hash_it_was_saved_with(tmp_path, damage, fact):
    folder = save(tmp_path, 5).folder
    saved = read_manifest(folder).files["tokenizer.model"]
    damage(folder / "tokenizer.model")
    with pytest.raises(CorruptFileError, match=f"tokenizer.model.*{fact}"):
        check_file(folder / "tokenizer.model", saved)
    assert not is_whole(folder / "tokenizer.model", saved)


@pytest.mark.parametrize("name", ["../up", "/etc/passwd", ".hidden", ""])
def test_a_manifest_names_no_file_outside_of_its_folder(tmp_path, name):
    files = {name: {"bytes": 1, "sha256": "x"}}
    (tmp_path / "manifest.json").write_text(json.dumps({"files": files}))
    with pytest.raises(CorruptFileError, match=r"manifest\.json"):
        read_manifest(tmp_path)


def test_a_state_says_what_model_the_weights_are_of(tmp_path):
    shape = ModelSettings(preset="transformer-tiny", width=32, heads=2, filter=64)
    state = {"step": 5, "run": {"step": 5}, "model": shape.model_dump(), "vocabulary": 60}
    (tmp_path / "state.json").write_text(json.dumps(state | {"added": "by a later version"}))
    assert (read_state(tmp_path).model, read_state(tmp_path).vocabulary) == (shape, 60)
    (tmp_path / "state.json").write_text(json.dumps(state | {"vocabulary": "60"}))
    with pytest.raises(CorruptFileError, match="vocabulary"):
        read_state(tmp_path)
