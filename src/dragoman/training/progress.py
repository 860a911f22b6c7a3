"""The log of a run for a person: progress with the time that is left, scores, samples."""

import logging
from collections import deque

from dragoman.console import StatusLine, duration
from dragoman.telemetry.events import Evaluated, StepDone

logger = logging.getLogger(__name__)

RECENT_STEPS = 100


class ProgressLog:
    """Logs for the whole run, so only rank 0 has one that is not `silent`."""

    def __init__(self, last_step: int | None, every_s: float, silent: bool) -> None:
        self._last_step, self._silent = last_step, silent
        self._line = StatusLine(every_s)
        self._recent: deque[StepDone] = deque(maxlen=RECENT_STEPS)
        self._overhead_s = 0.0  # evaluations and the like, spread over the steps in the forecast
        self._steps = 0

    def log(self, text: str) -> None:
        if not self._silent:
            self._line.clear()
            logger.info(text)

    def step(self, done: StepDone) -> None:
        if self._silent:
            return
        self._recent.append(done)
        self._steps += 1
        if self._line.is_due():
            self._line.show(self._progress(done))

    def evaluation(self, done: Evaluated) -> None:
        self._overhead_s += done.seconds
        interval = ""
        if done.bleu_low is not None and done.bleu_high is not None:
            interval = f" ({done.bleu_low:.1f} to {done.bleu_high:.1f})"
        scores = ""
        if done.bleu is not None:
            scores = f"  BLEU {done.bleu:.1f}{interval}  chrF {done.chrf:.1f}"
        best = "  (best so far)" if done.is_best else ""
        if done.arrived_step is None:
            of_sample = done.train_sample_loss
            train = f", train sample {of_sample:.3f}" if of_sample else ""
            losses = f" validation loss {done.validation_loss:.3f}{train}"
            later = "" if scores else ", scores follow"
            self.log(f"step {done.step:,}:{losses}{scores}  in {done.seconds:.1f} s{later}{best}")
        else:
            how = (
                "afterwards" if done.beside_s is None else f"in {done.beside_s:.1f} s beside steps"
            )
            waited = f", waited for {done.seconds:.1f} s" if done.seconds else ""
            self.log(f"step {done.step:,}:{scores}  {how}{waited}{best}")
        for sample in done.samples:
            self.log(f"    {sample['source']}\n      -> {sample['translation']}")

    def end(self) -> None:
        if not self._silent:
            self._line.clear()

    def _progress(self, done: StepDone) -> str:
        seconds = sum(step.step_s for step in self._recent)
        tokens = sum(step.tokens for step in self._recent)
        of_last = f"/{self._last_step:,}" if self._last_step else ""
        left = ""
        if self._last_step:
            per_step = seconds / len(self._recent) + self._overhead_s / self._steps
            left = f"  {duration((self._last_step - done.step) * per_step)} left"
        return (
            f"step {done.step:,}{of_last}  epoch {done.epoch:.2f}  loss {done.loss:.3f}  "
            f"rate {done.learning_rate:.2e}  {tokens / seconds:,.0f} tokens/s{left}"
        )
