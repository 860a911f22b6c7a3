"""What a path means to whoever wants a model: a run, a checkpoint in it, or a checkpoint alone.

Without torch.
"""

import os
from pathlib import Path
from typing import NamedTuple

from dragoman.checkpoints.names import BEST, LATEST, is_checkpoint, step_of
from dragoman.errors import UserError
from dragoman.rundir import RunDir


class Located(NamedTuple):
    path: Path
    run: RunDir | None
    """None: the path is a checkpoint that was copied without its run."""
    checkpoint: str = ""
    """best, latest or a step, if the path is that checkpoint of the run; empty: it is the run."""

    @property
    def is_checkpoint(self) -> bool:
        return self.run is None or bool(self.checkpoint)


def locate(path: Path) -> Located:
    """Returns what a path means; one that is no checkpoint counts as a run, there or not."""
    run = RunDir(path)
    if run.config.exists() or run.checkpoints.is_dir():
        return Located(path, run)
    whole = Path(os.path.abspath(path))  # noqa: PTH100 - without following the links best and latest
    step = step_of(whole.name)
    is_named = step is not None or whole.name in (BEST, LATEST)
    if is_named and whole.parent.name == run.checkpoints.name:
        # As it was typed, for messages, where all of it was.
        folder = path.parent.parent if len(path.parts) > 2 else whole.parent.parent
        return Located(path, RunDir(folder), whole.name if step is None else str(step))
    if is_checkpoint(path):
        return Located(path, None)
    return Located(path, run)


def run_and_checkpoint(path: Path, checkpoint: str, average: int) -> tuple[RunDir, str]:
    """Returns the run and which of its checkpoints is meant, for whoever needs a whole run."""
    located = locate(path)
    refuse_two_choices(located, checkpoint, average)
    if located.run is None:
        raise UserError(
            f"{path}: is a checkpoint without its run, whose settings are needed, too; name the "
            "folder of the run"
        )
    return located.run, located.checkpoint or checkpoint


def refuse_two_choices(located: Located, checkpoint: str, average: int) -> None:
    """Refuses to choose among the checkpoints of a run where the path is one of them already."""
    if located.is_checkpoint and (checkpoint != BEST or average != 1):
        asked = f"checkpoint {checkpoint}" if checkpoint != BEST else f"average {average}"
        raise UserError(
            f"{located.path}: is a checkpoint, and {asked} would choose another; leave that out, "
            "or name the run"
        )
