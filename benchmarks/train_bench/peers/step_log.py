"""What the scripts of all tools share: reading their job, and logging the end of each step.

Runs in the environments of other tools, so it imports nothing but the standard library.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace


def read_job() -> SimpleNamespace:
    """Returns the task, the dropout shares and the folders that the benchmark has written."""
    return SimpleNamespace(**json.loads(Path(sys.argv[1]).read_text()))


class StepLog:
    """Writes a line a step, and ends the process after the last one.

    Ending at once leaves out what the tools do when they are done, such as saving a checkpoint.
    """

    def __init__(self, job: SimpleNamespace) -> None:
        self._file = Path(job.log).open("w", buffering=1)
        self._left = job.steps

    def step_ends(self, tokens: int, before_end: Callable[[], None] = lambda: None) -> None:
        self._file.write(json.dumps({"at": time.monotonic(), "tokens": tokens}) + "\n")
        self._left -= 1
        if self._left == 0:
            self._file.close()
            before_end()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)


def log_optimizer_steps(job: SimpleNamespace, tokens_of_step: Callable[[], int]) -> None:
    """Logs a step whenever any torch optimizer has made one; `tokens_of_step` counts its tokens."""
    from torch.optim.optimizer import register_optimizer_step_post_hook  # noqa: PLC0415

    log = StepLog(job)

    def after_step(*_: object) -> None:
        log.step_ends(tokens_of_step())

    register_optimizer_step_post_hook(after_step)
