"""A disk that is full or cannot be written: a sentence, and nothing that was there is lost."""

import os
import re
import signal
import stat
import subprocess
from contextlib import suppress

import pytest
from processes import dragoman, losses, start_dragoman, wait_until

from dragoman.checkpoints.finding import all_checkpoints, verify
from dragoman.rundir import RunDir, read_json

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of two megabytes, which a few checkpoints fill."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_disk_that_fills_up_does_not_stop_training_until_its_end(digits, small_disk):
    run = small_disk / "run"
    keep_all = ["--set", "checkpoints.keep_last=100"]
    done = dragoman("train", digits, "--run", run, "--set", "training.steps=200", *keep_all)
    assert done.returncode == 1
    assert "No space left on device while saving a checkpoint" in done.stderr
    assert "Traceback" not in done.stderr
    assert "training goes on and tries again later" in done.stderr
    whole = all_checkpoints(run / "checkpoints")
    assert whole
    for checkpoint in whole:
        verify(checkpoint)
    assert not list((run / "checkpoints").glob(".unfinished*"))
    assert max(losses(run)) > whole[-1].step


def test_a_folder_that_cannot_be_written_is_named(digits):
    done = dragoman("train", digits, "--run", "/proc/run")
    assert done.returncode == 1
    assert done.stderr.startswith("error: /proc/run: ")


def test_prepared_data_that_does_not_fit_is_finished_when_there_is_room(digits, small_disk):
    fill = small_disk / "fill"
    fill.write_bytes(bytes(1_950_000))
    command = ["prepare", digits, "--set", f"data.prepared={small_disk}/prepared"]
    done = dragoman(*command)
    assert done.returncode == 1
    assert f"{small_disk}/prepared: No space left on device" in done.stderr
    assert list(small_disk.rglob(".*")) == []
    fill.unlink()
    assert dragoman(*command).returncode == 0


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.cluster), 2])
def test_a_run_that_is_stopped_and_cannot_save_ends_with_an_error(digits, small_disk, workers):
    """Exit code 75 says that all is saved, and a scheduler acts on it."""
    run = small_disk / "run"
    rarely = ["--set", "checkpoints.every_steps=100000", "--set", "evaluation.every_steps=30"]
    process = start_dragoman(
        *("train", digits, "--run", run, "--workers", workers, "--set", "training.steps=100000"),
        *rarely,
    )
    wait_until((run / "checkpoints" / "latest").exists)
    fill(small_disk)
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate()
    assert process.returncode == 1, f"{output}{errors}"
    assert "No space left on device while saving a checkpoint" in errors
    saved = all_checkpoints(run / "checkpoints")[-1].step
    told = re.search(r"the newest step that is saved is (\d+), so (\d+) step\(s\) are lost", errors)
    assert told, errors
    status = read_json(RunDir(run).status)
    assert (int(told[1]), int(told[2])) == (saved, status["step"] - saved)
    assert status["state"] == "failed"
    assert "No space left on device" in status["reason"]
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("umask", "file_mode"), [(0o077, 0o600), pytest.param(0o002, 0o664, marks=pytest.mark.cluster)]
)
def test_who_may_read_a_run_is_for_the_umask_to_say(digits, tmp_path, umask, file_mode):
    run = tmp_path / "run"
    for command in (["train", digits, "--workers", 2, "--run"], ["evaluate"], ["report"]):
        done = dragoman(*command, run, umask=umask)
        assert done.returncode == 0, done.stderr
    modes = {
        path: stat.S_IMODE(path.stat().st_mode)
        for root in (run, tmp_path / "prepared")
        for path in root.rglob("*")
        if path.is_file()
    }
    assert {path: mode for path, mode in modes.items() if mode != file_mode} == {}


def fill(disk):
    """To the last byte."""
    with suppress(OSError), (disk / "fill").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(512))
