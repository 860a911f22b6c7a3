"""A signal for one rank of a real run, at one phase of one step: the environment for its processes.

    start_dragoman("train", recipe, "--workers", 2, env=fault(tmp_path, rank=1, step=7,
                   phase="backward", number=signal.SIGKILL))

Phases are those that a rank says it enters: data, forward, backward, agreement, optimizer,
synchronization, evaluation, checkpoint. Production code knows nothing of it: Python itself reads
`sitecustomize`.
"""

import os
import signal
from pathlib import Path

SITECUSTOMIZE = """
import os, sys
if {"train", "dragoman.cluster.zygote"} & {*sys.orig_argv}:
    from dragoman.distributed.pulse import Pulse
    rank, step, phase, number = os.environ["INJECTED_FAULT"].split()
    real = Pulse.enter
    def enter(self, entered, of_step=None):
        real(self, entered, of_step)
        is_here = os.environ.get("RANK", "0") == rank and self._beat.step == int(step)
        if is_here and entered == phase:
            os.kill(os.getpid(), int(number))
    Pulse.enter = enter
"""


def fault(
    folder: Path, rank: int, step: int, phase: str, number: int = signal.SIGKILL
) -> dict[str, str]:
    place = folder / "injected"
    place.mkdir(exist_ok=True)
    (place / "sitecustomize.py").write_text(SITECUSTOMIZE)
    return os.environ | {
        "OMP_NUM_THREADS": "1",
        # What is tested may be a checkout other than the one that is installed.
        "PYTHONPATH": os.pathsep.join(filter(None, [str(place), os.environ.get("PYTHONPATH")])),
        "INJECTED_FAULT": f"{rank} {step} {phase} {int(number)}",
    }
