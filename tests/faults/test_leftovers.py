"""What a kill leaves of a file that was being written is gone after the next start."""

import os
import signal

import pytest
from processes import dragoman

pytestmark = pytest.mark.timeout(300)

SITECUSTOMIZE = """
import os, sys
if "train" in sys.orig_argv:
    real = os.fsync
    def fsync(descriptor):
        if os.environ["DIES_WRITING"] in os.readlink(f"/proc/self/fd/{descriptor}"):
            os.kill(os.getpid(), 9)
        real(descriptor)
    os.fsync = fsync
"""


def hidden(folder):
    return sorted(path.name for path in folder.rglob(".*") if path.name != ".lock")


@pytest.mark.parametrize(
    "name",
    [
        ".unfinished",
        *(
            pytest.param(name, marks=pytest.mark.cluster)
            for name in (
                "/.config.toml-",
                "/.run-id-",
                "/.status.json-",
                "/.manifest.json-",
                "/.step-",
            )
        ),
    ],
)
def test_what_a_kill_leaves_in_the_run_directory_is_removed(digits, tmp_path, name):
    (tmp_path / "sitecustomize.py").write_text(SITECUSTOMIZE)
    run = tmp_path / "run"
    command = ["train", digits, "--run", run, "--set", "training.steps=10"]
    killed = dragoman(
        *command, env=os.environ | {"PYTHONPATH": str(tmp_path), "DIES_WRITING": name}
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert any(left.startswith(name.strip("/")) for left in hidden(run)), hidden(run)
    again = dragoman(*command)
    assert again.returncode == 0, again.stderr
    assert hidden(run) == []


@pytest.mark.cluster
def test_a_snapshot_in_memory_that_a_kill_left_unfinished_is_removed(digits, tmp_path):
    """Though this start takes no snapshot of its own, before which it would have been swept."""
    (tmp_path / "sitecustomize.py").write_text(SITECUSTOMIZE)
    memory = tmp_path / "memory"
    command = ["train", digits, "--run", tmp_path / "run"]
    settings = ["--set", f"checkpoints.memory_folder={memory}", "--set"]
    killed = dragoman(
        *(*command, *settings, "checkpoints.memory_every_steps=3"),
        env=os.environ | {"PYTHONPATH": str(tmp_path), "DIES_WRITING": f"{memory}/"},
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert any(left.startswith(".unfinished") for left in hidden(memory))
    again = dragoman(
        *(*command, *settings, "checkpoints.memory_every_steps=1000"),
        env=os.environ | {"PYTHONPATH": str(tmp_path), "DIES_WRITING": "/.step-00000010.txt-"},
    )
    assert again.returncode == -signal.SIGKILL, "before it is finished, which removes it all"
    assert hidden(memory) == []
