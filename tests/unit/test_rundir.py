import errno
import os
from pathlib import Path

import pytest

from dragoman.errors import CorruptFileError, StorageError
from dragoman.rundir import read_json, write_json, write_whole


def test_a_write_replaces_all_or_nothing(tmp_path, monkeypatch):
    path = tmp_path / "status.json"
    write_whole(path, "old")

    def no_space(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(StorageError, match="No space left on device while writing"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_json_survives_with_its_letters(tmp_path):
    write_json(tmp_path / "x.json", {"text": "fünf"})
    assert "fünf" in (tmp_path / "x.json").read_text(encoding="utf-8")
    assert read_json(tmp_path / "x.json") == {"text": "fünf"}


@pytest.mark.parametrize("content", ["", "{", "[1]", "\xff"])
def test_a_torn_json_file_is_named(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(CorruptFileError, match=r"x\.json"):
        read_json(path)


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="name a folder that can be written"):
        write_whole(Path(tmp_path / "file" / "x.json"), "content")
