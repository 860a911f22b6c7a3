"""The findings while a run goes on, as lines for its log: what `train` is handed to be watched by.

Speed is judged between steps, learning after each evaluation, by the same functions as in a report.
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
    def __init__(
        self,
        config: Config,
        hosts: Sequence[str],
        gradient_bytes: int,
        evaluations: Sequence[Evaluated],
    ) -> None:
        self._speed = LiveDiagnosis(hosts, gradient_bytes)
        self._config = config
        self._evaluations = list(evaluations)
        self._told = learning_line(config, self._evaluations)[0]

    def after_step(self, done: StepDone, parts_by_rank: Sequence[RankParts]) -> str | None:
        return self._speed.after(done, parts_by_rank)

    def after_evaluation(self, evaluated: Evaluated) -> str | None:
        """A line when there is something new; that it is over again is not worth one."""
        earlier = [e for e in self._evaluations if e.step < evaluated.step]  # after a rollback
        self._evaluations = [*earlier, evaluated]
        verdict, line = learning_line(self._config, self._evaluations)
        is_news = verdict != self._told
        self._told = verdict
        return line if is_news and line else None


def learning_line(config: Config, evaluations: Sequence[Evaluated]) -> tuple[str, str]:
    """What can be said of the learning so far, in a word and in a line; two empty ones: nothing."""
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
    """`hosts`: of each rank."""
    return LiveFindings(config, hosts, gradient_bytes, evaluations)
