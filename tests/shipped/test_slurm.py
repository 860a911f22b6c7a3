"""The job file for Slurm, submitted to a real Slurm of two nodes on this machine."""

import sys
from pathlib import Path

import pytest
from digits_language import write_recipe
from processes import losses, wait_until
from slurm_cluster import obstacle, slurm_cluster

from dragoman.rundir import RunDir
from dragoman.telemetry.events import AttemptStarted
from dragoman.telemetry.read.events import read_events

JOB = Path(__file__).parents[2] / "recipes" / "cluster" / "slurm.sbatch"
# Those of the file are for GPUs; what the command line says counts more.
SMALL = ("--ntasks-per-node=1", "--cpus-per-task=1")

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(obstacle()), reason=obstacle()),
]


def test_a_job_that_is_told_to_end_saves_is_queued_again_and_goes_on(tmp_path, monkeypatch):
    recipe = write_recipe(tmp_path)
    recipe.write_text(recipe.read_text().replace("steps = 20\n", "steps = 2000\n", 1))
    run = RunDir(tmp_path / "runs" / "digits")
    monkeypatch.setenv("DRAGOMAN_PYTHON", sys.executable)
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")  # no name server knows the nodes
    with slurm_cluster(tmp_path / "slurm") as slurm:
        job = slurm.run("sbatch", "--parsable", *SMALL, JOB, recipe, cwd=tmp_path).strip()
        wait_until(lambda: losses(run.root))
        # As Slurm does where --signal asks for it: to the tasks, and not to the script.
        slurm.run("scancel", "--signal=TERM", job)
        wait_until(lambda: slurm.job(job)["Reason"] == "BeginTime")  # some minutes from now
        stopped = max(losses(run.root))
        # The rest is short: the number of steps may be changed by those who continue a run.
        recipe.write_text(recipe.read_text().replace("steps = 2000", f"steps = {stopped + 5}", 1))
        slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now")
        wait_until(lambda: slurm.job(job)["JobState"] == "COMPLETED")
    starts = [each.stamped.event for each in read_events(run, 0, [AttemptStarted])]
    assert [start.ranks for start in starts] == [2, 2]
    assert [start.first_step for start in starts] == [1, stopped + 1]
    assert sorted(losses(run.root)) == list(range(1, stopped + 6))
