"""Faults in a Dask worker, which loads this file before its first task."""

import os
import signal
import time
from pathlib import Path

from dragoman.preparation import dask_workers

KILL_IN = [stage for stage in os.environ["FAULTS_KILL_IN"].split(",") if stage]
FLAGS = Path(os.environ["FAULTS_FLAGS"])
DELAY_S = float(os.environ["FAULTS_DELAY_S"])


def do_there(task, is_written, real=dask_workers.do_there):
    time.sleep(DELAY_S)
    stage = task.stage.folder.name.rsplit("-", 1)[0]
    if stage in KILL_IN and is_first(FLAGS / stage):
        result = task.do()
        if is_written:  # files without a record are what a killed worker leaves
            task.write(result)
        os.kill(os.getpid(), signal.SIGKILL)
    return real(task, is_written)


def is_first(flag: Path) -> bool:
    try:
        flag.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def is_seen(self) -> bool:
    """As on a machine with a disk of its own."""
    return False


dask_workers.do_there = do_there
if os.environ["FAULTS_IS_SHARED"] == "False":
    dask_workers.Shared.is_seen = is_seen
