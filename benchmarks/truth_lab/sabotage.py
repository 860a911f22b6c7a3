"""Pythons whose training has a device of its own, a slower one, or data that comes slowly.

All hosts of a lab share the machine's processors. So in most worlds a rank's device is one that
takes its time without using any of them: forward sleeps as long as such a device would compute.
Training itself knows nothing of it: Python reads `sitecustomize` when it starts.
"""

import json
import sys
from pathlib import Path

import dragoman
from truth_lab.world import World

SITECUSTOMIZE = """
import json, os, sys, time
if {"train", "dragoman.cluster.zygote"} & {*sys.orig_argv}:
    with open(os.environ["TRUTH_LAB"]) as file:
        plan = json.load(file)
    from dragoman.batches.loader import Loader
    from dragoman.model.loss import Objective
    from dragoman.training.updater import Updater

    gradients, forward, load = Updater.gradients, Objective.forward, Loader._load
    owed_s = 0.0

    def slow_gradients(self, work, *more):
        global owed_s
        owed_s = plan["device_s"] * 2 / self._group.ranks
        for first, last, factor in plan["slow"]:
            if first <= work.step <= last:
                owed_s *= factor
        return gradients(self, work, *more)

    def slow_forward(self, batch):
        global owed_s
        if self.training and owed_s:
            time.sleep(owed_s)
            owed_s = 0.0
        return forward(self, batch)

    def slow_load(self, step):
        time.sleep(plan["data_s"])
        return load(self, step)

    Updater.gradients, Objective.forward, Loader._load = slow_gradients, slow_forward, slow_load
"""
SOURCE = Path(dragoman.__file__).parents[1]
_NEVER = 1_000_000_000


def python_of(world: World, host: str, folder: Path) -> Path:
    """Writes the Python for a host, and returns where it is."""
    place = folder / f"python-{host}"
    place.mkdir(parents=True)
    (place / "sitecustomize.py").write_text(SITECUSTOMIZE, encoding="utf-8")
    plan = {
        "device_s": world.device_s,
        "slow": [
            [slow.from_step, slow.until_step or _NEVER, slow.factor]
            for slow in world.slow_devices
            if host in slow.hosts
        ],
        "data_s": sum(slow.seconds for slow in world.slow_data if host in slow.hosts),
    }
    (place / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    python = place / "python"
    python.write_text(
        "#!/bin/sh\n"
        f"export PYTHONPATH={place}:{SOURCE} TRUTH_LAB={place}/plan.json OMP_NUM_THREADS=1\n"
        f'exec {sys.executable} "$@"\n',
        encoding="utf-8",
    )
    python.chmod(0o755)
    return python
