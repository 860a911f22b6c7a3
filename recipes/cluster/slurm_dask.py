"""Prepares a corpus on nodes of a Slurm cluster, by workers that dask-jobqueue submits as jobs.

In a clone of the repository:

    pip install --editable '.[dask]' dask-jobqueue
    python recipes/cluster/slurm_dask.py recipes/wmt16-en-de.toml

Run it where jobs are submitted from, in the environment and the folder that all nodes share. After
an interruption the same command goes on. Not tried on a real Slurm: queue, account, memory and
network are those of your cluster.
"""

import sys

from dask_jobqueue import SLURMCluster

from dragoman.config import load_config
from dragoman.console import console_output, echo
from dragoman.preparation import prepare
from dragoman.preparation.dask_workers import dask_workers

JOBS = 4
CORES = 16
"""Of each job: one worker for each core, since cleaning text is Python."""


def main(recipe: str, *overrides: str) -> None:
    config = load_config(recipe, overrides)
    with SLURMCluster(
        job_name="dragoman-prepare",
        cores=CORES,
        processes=CORES,
        memory="64GB",
        walltime="04:00:00",
        python=sys.executable,
        # queue="...", account="...", interface="ib0",
        # A certificate for this cluster: whoever reaches a scheduler without one can run code on
        # its workers. The nodes read it from this folder.
        security=True,
        shared_temp_directory=".",
    ) as cluster:
        cluster.scale(jobs=JOBS)
        with console_output():
            address, security = cluster.scheduler_address, cluster.security
            prepared = prepare(config, lambda plan: dask_workers(address, plan, security))
            echo(f"prepared: {prepared.folder}; now: dragoman train {recipe}")


if __name__ == "__main__":
    main(*sys.argv[1:])
