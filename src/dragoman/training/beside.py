"""Scores of an evaluation, computed beside the steps that follow it. Of rank 0 alone.

A result takes effect at the next evaluation, or at the end of the run, where training waits for it
if need be: how fast it was decides nothing. Whatever goes wrong costs time, and at worst one BLEU.
"""

import importlib.util
import logging
import time
from collections.abc import Callable
from typing import NamedTuple

import torch

from dragoman.config import Config
from dragoman.cores import usable_cores
from dragoman.decoding.torch_engine import TorchEngine
from dragoman.decoding.trained import Chosen, load_model
from dragoman.distributed.group import Group
from dragoman.errors import RunError
from dragoman.evaluation.beside import (
    CORES_OF_A_GPU_WORKER,
    ScoreAnswer,
    ScoreRequest,
    SideProcess,
    idle_cores,
)
from dragoman.evaluation.checkpoint_scorer import score_checkpoint
from dragoman.rundir import RunDir

logger = logging.getLogger(__name__)

LONGEST_WAIT_S = 600.0
"""In which training stands still for the process. Other ranks wait for half an hour at most, and
the work may have to be done again."""
POLL_EVERY_S = 0.5
"""Whether training is to stop: who takes the machine away waits for seconds, not for minutes."""


class Outcome(NamedTuple):
    answer: ScoreAnswer | None
    """None: there are no scores and will be none."""
    is_beside: bool
    """The process has computed it."""
    problem: str
    """What went wrong; empty: nothing."""


class Scorer:
    """Has at most one checkpoint scored at a time, and computes nothing that is not expected."""

    def __init__(self, is_used: bool, threads: int, device: torch.device) -> None:
        self.is_used = is_used
        """Of new evaluations; alike on all ranks."""
        self._threads, self._device = threads, device
        self._request: ScoreRequest | None = None
        self._process: SideProcess | None = None
        self._outcome: Outcome | None = None

    def expect(self, request: ScoreRequest | None) -> None:
        """Scores this checkpoint, unless it is at it, and gives up any other; None: none."""
        if request and self._request and request.step == self._request.step:
            return
        self.close()
        self._request, self._outcome = request, None

    def poll(self, is_saved: bool) -> ScoreAnswer | None:
        """Begins once the checkpoint `is_saved`; returns the answer, once, when it is there."""
        if self._request is None or self._outcome or not self.is_used:
            return None
        if self._process is None:
            if is_saved:
                self._start(self._request)
            return None
        if not self._process.has_ended:
            return None
        self._outcome = self._ended(self._process)
        return self._outcome.answer

    def wait(self, is_stopping: Callable[[], bool]) -> tuple[Outcome, bool] | None:
        """Returns what came of the checkpoint, which is saved by now, and whether that is news.

        Where the process has failed, the same is done here with torch. None: training `is_stopping`
        before that is known. Never raises.
        """
        assert self._request
        if self._outcome is None and is_stopping():
            return None
        is_news = self._outcome is None or self._outcome.answer is None
        if self._outcome is None and self.is_used:
            if self._process is None:
                self._start(self._request)
            if self._process:
                if not _waited_for(self._process, is_stopping):
                    return None
                self._outcome = self._ended(self._process)
        before = self._outcome or Outcome(None, False, "")
        outcome = before if before.answer else self._here(self._request, before.problem)
        self.expect(None)
        return outcome, is_news

    def close(self) -> None:
        """Ends the process, if there is one."""
        if self._process:
            self._process.close()
        self._process = None

    def _start(self, request: ScoreRequest) -> None:
        try:
            self._process = SideProcess(request, self._threads)
        except OSError as error:
            problem = f"no process that scores beside training can be started ({error})"
            self._outcome = Outcome(None, False, problem)

    def _ended(self, process: SideProcess) -> Outcome:
        try:
            if process.has_ended:
                return Outcome(process.answer(), True, "")
            problem = f"a score beside training was waited for {LONGEST_WAIT_S:.0f} s in vain"
        except RunError as error:
            problem = str(error)
        finally:
            self.close()
        return Outcome(None, False, problem)

    def _here(self, request: ScoreRequest, problem: str) -> Outcome:
        def open_torch(run: RunDir, chosen: Chosen) -> TorchEngine:
            model = load_model(chosen, self._device)
            return TorchEngine(model, chosen.tokenizer, self._device)

        try:
            return Outcome(score_checkpoint(request, open_torch), False, problem)
        except Exception as error:  # whatever it is, the run can go on without this score
            sentences = [problem] if problem else []
            return Outcome(None, False, "; ".join([*sentences, str(error) or repr(error)]))


def _waited_for(process: SideProcess, is_stopping: Callable[[], bool]) -> bool:
    """Returns False where training `is_stopping`; True: the process has ended, or takes longer."""
    until = time.monotonic() + LONGEST_WAIT_S
    while not process.wait(min(POLL_EVERY_S, LONGEST_WAIT_S)) and time.monotonic() < until:
        if is_stopping():
            return False
    return True


def why_not_beside(config: Config, group: Group) -> str:
    """Returns why `evaluation.beside` cannot be followed; empty: it can, or nobody asked for it.

    Collective: every rank must call.
    """
    is_missing = config.evaluation.beside and importlib.util.find_spec("ctranslate2") is None
    if not group.broadcast(is_missing):
        return ""
    return (
        "evaluation.beside needs CTranslate2, which is not installed on the first host; training "
        "stops for evaluations until it is (pip install ctranslate2)"
    )


def threads_for(config: Config, workers: int, device: torch.device) -> int:
    """Returns how many threads score beside the `workers` of this host."""
    of_a_worker = torch.get_num_threads() if device.type == "cpu" else CORES_OF_A_GPU_WORKER
    given = config.evaluation.beside_threads
    return given or idle_cores(usable_cores(), workers, of_a_worker)
