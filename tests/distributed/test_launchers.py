"""Started by what others use: real mpirun, and tasks with the variables that srun sets."""

import os
import shutil
import subprocess
import sys

import pytest
from processes import dragoman, losses

from dragoman.rundir import RunDir, read_json

pytestmark = pytest.mark.timeout(240)

PLAIN = {"OMP_NUM_THREADS": "1"}


@pytest.mark.cluster
def test_mpirun_starts_a_run(digits, tmp_path):
    if not shutil.which("mpirun"):
        pytest.skip("needs mpirun: apt install openmpi-bin")
    assert dragoman("prepare", digits).returncode == 0
    done = subprocess.run(
        [
            *("mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2"),
            *(sys.executable, "-m", "dragoman", "train", digits, "--run", tmp_path / "run"),
        ],
        env=os.environ | PLAIN,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert read_json(RunDir(tmp_path / "run").status)["ranks"] == 2
    assert sorted(losses(tmp_path / "run")) == list(range(1, 21))


def test_tasks_of_srun_find_each_other(digits, tmp_path):
    assert dragoman("prepare", digits).returncode == 0
    tasks = [
        subprocess.Popen(
            [sys.executable, "-m", "dragoman", "train", digits, "--run", tmp_path / "run"],
            env=os.environ
            | PLAIN
            | {
                "SLURM_JOB_ID": str(os.getpid()),
                "SLURM_STEP_ID": "0",
                "SLURM_STEP_NUM_TASKS": "2",
                "SLURM_STEP_NODELIST": "localhost",
                "SLURM_PROCID": str(task),
                "SLURM_LOCALID": str(task),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for task in range(2)
    ]
    outputs = [task.communicate()[0] for task in tasks]
    assert [task.returncode for task in tasks] == [0, 0], outputs
    assert "2 worker(s)" in outputs[0]
    assert outputs[1].strip() == ""
