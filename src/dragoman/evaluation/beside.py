"""A process that scores a checkpoint while training goes on, as the trainer sees it. Without torch.

The request is an unnamed file that the process reads as its input, the answer one that it writes as
its output: nobody waits at a pipe, and nothing is left behind. `checkpoint_scorer` is the program.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from dragoman.config import DecodingSettings
from dragoman.errors import RunError
from dragoman.evaluation.scoring import Scores
from dragoman.evaluation.translations import ComparedWithBest

PROGRAM = "dragoman.evaluation.checkpoint_scorer"
CORES_OF_A_GPU_WORKER = 2
"""One feeds the GPU, one reads and batches pairs."""
MOST_ERROR_BYTES = 100_000


class ScoreRequest(BaseModel):
    model_config = ConfigDict(frozen=True)

    run: Path
    step: int
    """Of the checkpoint."""
    best_step: int | None
    """With whose translations those of this step are compared."""
    sources: list[str]
    references: list[str]
    decoding: DecodingSettings
    longest: int
    """Sentences with more tokens are translated in pieces."""
    target_language: str
    samples: int


class ScoreAnswer(BaseModel):
    model_config = ConfigDict(frozen=True)

    scores: Scores
    compared: ComparedWithBest
    samples: list[dict[str, str]]
    seconds: float
    """From the beginning of the process, or of the work of another."""


class SideProcess:
    """Scores one checkpoint. To be started by the thread that trains: it ends with that."""

    def __init__(self, request: ScoreRequest, threads: int, program: Sequence[str] = ()) -> None:
        """Raises OSError where the system refuses a file or a process.

        `program` takes the place of Python with `PROGRAM`, in tests.
        """
        with ExitStack() as opened:
            question, self._answer, self._errors = (
                opened.enter_context(tempfile.TemporaryFile()) for _ in range(3)
            )
            question.write(request.model_dump_json().encode())
            question.seek(0)
            self._process = subprocess.Popen(
                [*(program or (sys.executable, "-m", PROGRAM)), str(os.getpid()), str(threads)],
                stdin=question,
                stdout=self._answer,
                stderr=self._errors,
                # It has no use for a GPU, whose memory is training's.
                env=os.environ | {"OMP_NUM_THREADS": str(threads), "CUDA_VISIBLE_DEVICES": ""},
                start_new_session=True,
            )
            self._opened = opened.pop_all()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def wait(self, timeout_s: float) -> bool:
        """Returns whether it has ended within that time."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
        return self.has_ended

    def answer(self) -> ScoreAnswer:
        """Returns the answer of a process that has ended, or raises RunError with why it failed."""
        code = self._process.returncode
        if code:
            raise RunError(f"the process that scores beside training {self._how_it_failed(code)}")
        self._answer.seek(0)
        try:
            return ScoreAnswer.model_validate_json(self._answer.read())
        except ValidationError as error:
            raise RunError(
                "the process that scores beside training has given no whole answer"
            ) from error

    def close(self) -> None:
        """Ends the process, if it has not ended, and forgets its files."""
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        self._opened.close()

    def _how_it_failed(self, code: int) -> str:
        if code < 0:
            return f"was ended by {signal.Signals(-code).name}"
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - MOST_ERROR_BYTES))
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return f"failed: {lines[-1] if lines else f'exit code {code}'}"


def idle_cores(cores: int, workers: int, worker_threads: int) -> int:
    """Returns how many of a host's cores its workers leave idle; at least one, which is shared."""
    return max(1, cores - workers * worker_threads)
