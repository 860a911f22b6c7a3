import subprocess
import sys

import psutil
import pytest

from dragoman.check import describe


@pytest.fixture
def question(tmp_path):
    return {"folder": str(tmp_path), "prepared": "prepared/x", "run": "x"}


def test_a_host_describes_itself(question):
    found = describe.description(question)
    assert found["facts"]["cores"] > 0
    assert found["processor"]
    assert found["memory_bytes"] == psutil.virtual_memory().total
    assert found["config"] is None
    assert found["gpus"] == []


def test_a_run_of_the_name_is_shown(question, tmp_path):
    (tmp_path / "runs" / "x").mkdir(parents=True)
    (tmp_path / "runs" / "x" / "config.toml").write_text('name = "x"')
    assert describe.description(question)["config"] == 'name = "x"'
    assert describe.description(question | {"run": ""})["config"] is None


def test_runs_may_have_a_disk_of_their_own(tmp_path):
    assert describe.storage_of(tmp_path) == tmp_path
    (tmp_path / "runs").mkdir()
    assert describe.storage_of(tmp_path) == tmp_path / "runs"


def test_virtual_interfaces_announce_nothing():
    assert "lo" not in describe.announced_links()


def test_a_busy_program_is_found_and_checks_are_not(tmp_path):
    burner = tmp_path / "burner"
    burner.symlink_to(sys.executable)
    loop = "while True: pass"
    busy = [
        subprocess.Popen([burner, "-c", loop]),
        subprocess.Popen([burner, "-c", f"'dragoman.check'\n{loop}"]),
    ]
    try:
        found = describe.load("lo", over_s=1.0)
        used = describe._seconds_used()
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert found["busy_cores"] > 0
    assert 0 <= found["processor_share"] <= 1
    assert (busy[0].pid, "burner") in used
    assert (busy[1].pid, "burner") not in used


def test_an_interface_that_is_not_there_carries_nothing():
    found = describe.load("nowhere0", over_s=0.01)
    assert found["sent_bytes_per_s"] == found["received_bytes_per_s"] == 0
