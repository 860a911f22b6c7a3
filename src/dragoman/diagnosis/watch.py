"""Findings while a run goes on, as lines for its log: the observer that `train` is handed.

Speed is judged between steps, learning after each evaluation, by the functions that make a report.
"""

from collections.abc import Sequence

from dragoman.config import Config
from dragoman.diagnosis.answers.overfitting import overfit_of
from dragoman.diagnosis.answers.trained import is_steady, rate_left_of
from dragoman.diagnosis.learning.convergence import outlook_of, verdict_of
from dragoman.diagnosis.learning.evaluations import columns_of
from dragoman.diagnosis.speed.online import LiveDiagnosis
from dragoman.telemetry.events import Evaluated, StepDone
from dragoman.training.observer import RankParts


class LiveFindings:
    """Implements `training.observer.Observer`."""

    def __init__(
        self,
        config: Config,
        hosts: Sequence[str],
        gradient_bytes: int,
        evaluations: Sequence[Evaluated],
    ) -> None:
        self.speed = LiveDiagnosis(hosts, gradient_bytes)
        self._config = config
        self._evaluations = list(evaluations)
        self._logged = learning_line(config, self._evaluations)[0]

    def after_step(self, done: StepDone, parts_by_rank: Sequence[RankParts]) -> str | None:
        return self.speed.after(done, parts_by_rank)

    def after_evaluation(self, evaluated: Evaluated) -> str | None:
        """Returns a line when there is something new; that it is over again is not worth one."""
        earlier = [e for e in self._evaluations if e.step < evaluated.step]  # after a rollback
        self._evaluations = [*earlier, evaluated]
        verdict, line = learning_line(self._config, self._evaluations)
        is_news = verdict != self._logged
        self._logged = verdict
        return line if is_news and line else None


def learning_line(config: Config, evaluations: Sequence[Evaluated]) -> tuple[str, str]:
    """Returns what can be said of the learning so far: a word and a line, which may be empty."""
    every = columns_of(evaluations).finite
    after = every.where(every.steps >= config.schedule.warmup_steps)
    overfit = overfit_of(after)
    if overfit.state == "overfitting" and overfit.rise:
        step = int(after.steps[overfit.rise.lowest])
        then = "BLEU rises all the same" if overfit.bleu_rises else "more steps make it worse"
        return "overfitting", (
            f"overfitting since step {step:,}: the validation loss is up by "
            f"{overfit.rise.rise:.3f} while that of the training sample falls; {then}"
        )
    if overfit.state == "both rise" and overfit.rise:
        step = int(after.steps[overfit.rise.lowest])
        return "diverging", (
            f"losing ground since step {step:,}: validation loss and that of the training sample "
            "both rise; a lower learning rate is needed"
        )
    # Losses follow tokens, which follow steps: only ratios count.
    outlook = outlook_of(after.steps, after.validation, after.bleu, is_steady(config, after))
    rate_left = rate_left_of(config, int(after.steps[-1])) if len(after) else None
    if outlook and not rate_left and verdict_of(outlook) in (("yes", "high"), ("yes", "medium")):
        return "trained", (
            "fully trained, as far as its losses tell: a quarter more steps would lower the "
            f"validation loss by {outlook.gain().value:.3f}"
        )
    return "", ""


def watch(
    config: Config,
    hosts: Sequence[str],
    gradient_bytes: int,
    evaluations: Sequence[Evaluated],
) -> LiveFindings:
    """Returns who watches a run; `hosts` are those of each rank."""
    return LiveFindings(config, hosts, gradient_bytes, evaluations)
