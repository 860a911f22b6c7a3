import pytest

from dragoman.checkpoints import names
from dragoman.errors import StorageError


def test_a_step_names_its_folder_and_the_folder_its_step():
    assert names.folder_of(12_000) == "step-00012000"
    for step in (0, 12_000, 10**12):
        assert names.step_of(names.folder_of(step)) == step
    for other in ("step-12", "step-0000001a", ".replaced-step-00012000", "latest"):
        assert names.step_of(other) is None


def test_names_sort_like_their_steps():
    steps = [5, 40, 300, 99_999_999]
    assert sorted(map(names.folder_of, steps)) == [names.folder_of(step) for step in steps]


def test_a_checkpoint_is_told_by_its_files_and_a_run_with_a_manifest_is_none(tmp_path):
    copied, run = tmp_path / "mine", tmp_path / "run"
    for folder in (copied, run):
        folder.mkdir()
        assert not names.is_checkpoint(folder)
        (folder / "manifest.json").write_text("{}")
    assert not names.is_checkpoint(run)
    assert names.is_checkpoint(copied.rename(tmp_path / "step-00000005"))
    copied = (tmp_path / "step-00000005").rename(copied)
    assert not names.is_checkpoint(copied)
    (copied / "state.json").write_text("{}")
    assert names.is_checkpoint(copied)


def test_a_link_is_set_in_one_step_and_leaves_nothing_beside_it(tmp_path):
    assert names.linked_step(tmp_path, "latest") is None
    names.point_to(tmp_path, "latest", "step-00000005")
    names.point_to(tmp_path, "latest", "step-00000010")
    assert names.linked_step(tmp_path, "latest") == 10
    assert [path.name for path in tmp_path.iterdir()] == ["latest"]


def test_a_link_that_cannot_be_set_is_told_of_by_its_name(tmp_path):
    with pytest.raises(StorageError, match="gone/best"):
        names.point_to(tmp_path / "gone", "best", "step-00000005")


def test_only_halves_of_our_own_links_are_taken_for_such():
    assert names.is_unfinished_link(".latest-77")
    assert names.is_unfinished_link(".best-1")
    assert not names.is_unfinished_link("latest")
    assert not names.is_unfinished_link(".other-1")
