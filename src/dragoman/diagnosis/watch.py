"""Findings while a run goes on, as lines for its log: the observer that `train` is handed.

Speed is judged between steps, learning after each evaluation, by the functions that make a report.
"""

from collections.abc import Sequence

from dragoman.config import Config
from dragoman.diagnosis.learning.convergence import forecast_of, is_steady, rate_left_of, verdict_of
from dragoman.diagnosis.learning.evaluations import Evaluations
from dragoman.diagnosis.learning.leak import leak_of
from dragoman.diagnosis.learning.level import level_of
from dragoman.diagnosis.learning.overfit import overfit_of
from dragoman.diagnosis.speed.online import LiveDiagnosis
from dragoman.telemetry.events import Evaluated, StepDone
from dragoman.training.observer import RankParts


class LiveFindings:
    """Is a `training.observer.Watch`, and makes an `Observer`."""

    def __init__(
        self,
        config: Config,
        hosts: Sequence[str],
        gradient_bytes: int,
        evaluations: Sequence[Evaluated],
    ) -> None:
        self.speed = LiveDiagnosis(config, hosts, gradient_bytes)
        self._config = config
        self._evaluations = list(evaluations)

    def after_step(self, done: StepDone, parts_by_rank: Sequence[RankParts]) -> str | None:
        return self.speed.after(done, parts_by_rank)

    def after_evaluation(self, evaluated: Evaluated) -> str | None:
        """Returns a line when there is something new; that it is over again is not worth one."""
        before, _ = learning_line(self._config, self._evaluations)
        earlier = [e for e in self._evaluations if e.step < evaluated.step]  # after a rollback
        self._evaluations = [*earlier, evaluated]
        verdict, line = learning_line(self._config, self._evaluations)
        return line if line and verdict != before else None


def learning_line(config: Config, evaluations: Sequence[Evaluated]) -> tuple[str, str]:
    """Returns what can be said of the learning so far: a word and a line, which may be empty."""
    every = Evaluations.from_events(evaluations).finite
    after = every.where(every.step >= config.schedule.warmup_steps)
    overfit = overfit_of(after)
    if overfit and overfit.state == "overfitting":
        then = "BLEU rises all the same" if overfit.bleu_rises else "more steps make it worse"
        return "overfitting", (
            f"overfitting since step {overfit.lowest_step:,}: the validation loss is up by "
            f"{overfit.rise.rise:.3f} while that of the training sample falls; {then}"
        )
    if overfit and overfit.state == "both rise":
        return "diverging", (
            f"losing ground since step {overfit.lowest_step:,}: validation loss and that of the "
            "training sample both rise; a lower learning rate is needed"
        )
    # Losses follow tokens, which follow steps: only ratios count.
    steady = is_steady(config, after.step)
    forecast = forecast_of(after.step, after.validation_loss, after.bleu, steady)
    if forecast is None or leak_of(config, every, []):
        return "", ""
    rate_left = rate_left_of(config, int(after.step[-1]))
    if not rate_left and verdict_of(forecast) in (("yes", "high"), ("yes", "medium")):
        level = level_of(after, config.tokenizer.vocabulary)
        if level.is_poor:
            return "poor", (
                f"at rest at {level.loss:.2f} nats, far above what translation models reach: "
                "something else than the number of steps is wrong"
            )
        return "trained", (
            "fully trained, as far as its losses tell: a quarter more steps would lower the "
            f"validation loss by {forecast.gain().value:.3f}"
        )
    return "", ""
