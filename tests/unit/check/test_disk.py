import os

import pytest

from dragoman.check import disk
from dragoman.errors import StorageError


def test_it_writes_and_leaves_nothing(tmp_path):
    assert disk.write_speed(tmp_path) > 0
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_not_written_to(tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 30_000_000})()
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda folder: usage)
    assert disk.write_speed(tmp_path) is None


def test_what_the_system_refuses_is_an_error_about_the_folder(tmp_path, monkeypatch):
    with pytest.raises(StorageError, match="nowhere"):
        disk.write_speed(tmp_path / "nowhere")

    def refuse(*_):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(disk.os, "write", refuse)
    with pytest.raises(StorageError, match="No space left"):
        disk.write_speed(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_slow_disks_get_little_to_write(tmp_path, monkeypatch):
    written = []

    def seconds(descriptor, size):
        written.append(size)
        return size / 2e6

    monkeypatch.setattr(disk, "_seconds", seconds)
    assert disk.write_speed(tmp_path) == pytest.approx(2e6)
    assert sum(written) <= 3 * disk.FIRST_BYTES
