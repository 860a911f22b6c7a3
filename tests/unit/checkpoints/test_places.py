import pytest

from dragoman.checkpoints.places import (
    leave_mark,
    memory_root,
    remove_mark,
    remove_root,
    sees_mark,
)
from dragoman.errors import StorageError


def test_every_run_has_a_folder_in_memory_of_its_own(tmp_path):
    one = memory_root(tmp_path, tmp_path / "a" / "my run")
    assert one == memory_root(tmp_path, tmp_path / "a" / "b" / ".." / "my run")
    assert one != memory_root(tmp_path, tmp_path / "c" / "my run")
    assert one.parent == tmp_path
    assert one.name.startswith("dragoman-my_run-")
    one.mkdir()
    remove_root(one)
    remove_root(one)
    assert not one.exists()


def test_ranks_find_out_who_shares_a_folder(tmp_path):
    shared, alone = tmp_path / "shared", tmp_path / "alone"
    for root, rank in ((shared, 0), (shared, 2), (alone, 4)):
        leave_mark(root, "n1", rank)
    assert sees_mark(shared, "n1", [0])
    assert not sees_mark(alone, "n1", [0, 2])
    assert not sees_mark(shared, "n2", [0, 2])
    assert not sees_mark(shared, "n1", [])
    for rank in (0, 2):
        remove_mark(shared, "n1", rank)
        remove_mark(shared, "n1", rank)
    assert list(shared.iterdir()) == []
    with pytest.raises(StorageError, match="leaving a mark"):
        leave_mark(tmp_path / "alone" / ".seen-n1-4", "n1", 0)
