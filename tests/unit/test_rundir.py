import errno
import fcntl
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.errors import CorruptFileError, StorageError
from dragoman.rundir import ensure_writable, read_json, remove_unfinished, write_json, write_whole


def test_a_write_replaces_all_or_nothing(tmp_path, monkeypatch):
    path = tmp_path / "status.json"
    write_whole(path, "old")

    def no_space(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(StorageError, match="No space left on device"):
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


@pytest.mark.parametrize(("umask", "mode"), [(0o077, 0o600), (0o022, 0o644), (0o002, 0o664)])
def test_who_may_read_a_file_is_for_the_umask_to_say(tmp_path, umask, mode):
    program = (
        "import sys; from pathlib import Path; from dragoman.rundir import write_whole; "
        "write_whole(Path(sys.argv[1]), 'x')"
    )
    path = tmp_path / "x.json"
    subprocess.run([sys.executable, "-c", program, path], check=True, umask=umask)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_what_killed_writers_left_is_removed_and_nothing_else(tmp_path):
    left = [
        ".status.json-0123456789abcdef",
        ".config.toml-x1y2z3_4",
        ".step-00000010.txt-" + 16 * "a",
    ]
    stays = [".lock", ".notes-20240101", "status.json", ".status.json", ".report.html-old"]
    for name in (*left, *stays):
        (tmp_path / name).touch()
    remove_unfinished(tmp_path)
    remove_unfinished(tmp_path / "none")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(stays)


def test_a_file_that_somebody_writes_just_then_is_no_leftover(tmp_path, monkeypatch):
    real = os.fsync

    def sweep_and_sync(descriptor):
        remove_unfinished(tmp_path)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", sweep_and_sync)
    write_whole(tmp_path / "x.json", "content")
    assert (tmp_path / "x.json").read_text() == "content"


def test_a_file_that_was_taken_for_a_leftover_is_made_again(tmp_path, monkeypatch):
    """In the moment between making it and locking it."""
    real = fcntl.flock
    swept = []

    def sweep_and_lock(file, kind):
        if not swept:
            swept.extend(tmp_path.glob(".x.json-*"))
            swept[0].unlink()
        real(file, kind)

    monkeypatch.setattr(fcntl, "flock", sweep_and_lock)
    write_whole(tmp_path / "x.json", "content")
    assert swept
    assert (tmp_path / "x.json").read_text() == "content"


def test_a_place_that_can_be_written_to_stays_as_it_is_and_another_is_refused(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("old")
    ensure_writable(path)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("x.json", "old")]
    with pytest.raises(StorageError):
        ensure_writable(path / "y.json")
