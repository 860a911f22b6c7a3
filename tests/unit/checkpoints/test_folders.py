import hashlib

import pytest

from dragoman.checkpoints.folders import (
    make_room,
    put_in_place,
    remove_folder,
    remove_replaced,
    write_file,
)


def folder(path, content):
    path.mkdir()
    (path / "file").write_text(content)
    return path


def names(root):
    return sorted(path.name for path in root.iterdir())


def test_a_file_is_hashed_while_it_is_written_and_never_over_another(tmp_path):
    path = tmp_path / "file"
    fingerprint = write_file(path, [b"one", memoryview(b"two")])
    assert path.read_bytes() == b"onetwo"
    assert fingerprint == {"bytes": 6, "sha256": hashlib.sha256(b"onetwo").hexdigest()}
    with pytest.raises(FileExistsError):
        write_file(path, [b"three"])


def test_a_folder_takes_the_place_of_another_which_stays_until_it_is_removed(tmp_path):
    beside = folder(tmp_path / ".unfinished-step-00000005-1", "new")
    put_in_place(beside, folder(tmp_path / "step-00000005", "old"))
    assert (tmp_path / "step-00000005" / "file").read_text() == "new"
    assert (tmp_path / ".replaced-step-00000005" / "file").read_text() == "old"
    remove_replaced(tmp_path)
    assert names(tmp_path) == ["step-00000005"]


def test_what_a_crash_has_left_goes_and_what_it_has_hidden_comes_back(tmp_path):
    folder(tmp_path / ".unfinished-step-00000015-1", "half")
    folder(tmp_path / ".removed-step-00000001", "half")
    folder(tmp_path / ".replaced-step-00000005", "hidden")
    folder(tmp_path / ".replaced-step-00000010", "replaced")
    folder(tmp_path / "step-00000010", "there")
    (tmp_path / ".latest-77").symlink_to("step-00000015")
    make_room(tmp_path)
    assert names(tmp_path) == [".replaced-step-00000010", "step-00000005", "step-00000010"]
    assert (tmp_path / "step-00000005" / "file").read_text() == "hidden"


def test_a_removed_folder_is_gone_even_where_a_removal_was_cut_off_before(tmp_path):
    folder(tmp_path / ".removed-step-00000005", "half")
    remove_folder(folder(tmp_path / "step-00000005", "whole"))
    assert names(tmp_path) == []
