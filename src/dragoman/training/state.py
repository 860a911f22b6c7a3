"""How far a run is: one immutable value, which is also what a checkpoint keeps."""

import dataclasses
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import AfterValidator, Field, Strict, StrictFloat, StrictInt, TypeAdapter

from dragoman.config import LARGEST_INTEGER, MOST_STEPS, SyncSettings, between
from dragoman.training.divergence import DivergenceState

Step = Annotated[int, Strict(), between(0, MOST_STEPS)]
Number = Annotated[float, Strict()]
StepName = Annotated[str, Field(pattern=r"^[0-9]{1,13}$")]

# Of torch's GradScaler, which takes nothing else.
_SCALER_KEYS = {"scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"}


def _is_scaler_state(state: dict[str, float]) -> dict[str, float]:
    if state and state.keys() != _SCALER_KEYS:
        raise ValueError(f"should hold {', '.join(sorted(_SCALER_KEYS))}, or nothing")
    return state


def _is_sync_settings(settings: dict[str, Any]) -> dict[str, Any]:
    if settings and SyncSettings(**settings).mode == "auto":
        raise ValueError("should hold the settings of [sync] that auto has chosen, or nothing")
    return settings


@dataclass(frozen=True)
class PendingEvaluation:
    """Losses of a step whose scores are still computed beside training."""

    step: Step
    best_step: Step | None
    """The best before it, with which its translations are compared."""
    validation_loss: Number
    validation_loss_error: Number | None = None
    train_sample_loss: Number | None = None
    train_sample_loss_error: Number | None = None


@dataclass(frozen=True)
class RunState:
    step: Step = 0
    tokens: Annotated[int, Strict(), between(0, LARGEST_INTEGER)] = 0
    elapsed_s: Annotated[Number, between(0, 1e12)] = 0.0
    """Of all attempts together, up to this step."""
    best_step: Step | None = None
    best_score: Number | None = None
    """Higher is better, whatever the score is made of; of a loss that is not finite, neither."""
    evaluations_since_best: Step = 0
    evaluated_step: Step = 0
    """Of the last evaluation; a run that is stopped when one is due makes up for it."""
    pending: PendingEvaluation | None = None
    """Whose scores take effect at the next evaluation, or at the end of the run."""
    scores: dict[StepName, Number] = field(default_factory=dict)
    """Step -> score of the evaluations whose checkpoints may be kept as the best."""
    loss_scaling: Annotated[
        dict[str, Annotated[StrictInt | StrictFloat, between(0, 1e38)]],
        AfterValidator(_is_scaler_state),
    ] = field(default_factory=dict)
    """fp16 only: the scaler's own state."""
    optimizer: Annotated[
        dict[str, Annotated[StrictInt | StrictFloat, between(0, 1e38)]], Field(max_length=3)
    ] = field(default_factory=dict)
    """What the optimizer counts apart from its tensors; `training.optimizers` knows the keys."""
    sync: Annotated[dict[str, Any], AfterValidator(_is_sync_settings)] = field(default_factory=dict)
    """With `sync.mode` auto, the settings that it has chosen."""
    divergence: Annotated[DivergenceState, Field(alias="numbers")] = field(
        default_factory=DivergenceState
    )
    """What the run remembers of its losses; checkpoints keep the key that they began with."""

    def after_step(self, tokens: int, seconds: float) -> "RunState":
        return dataclasses.replace(
            self,
            step=self.step + 1,
            tokens=self.tokens + tokens,
            elapsed_s=self.elapsed_s + seconds,
        )

    def after_evaluation(self, score: float, seconds: float, keep_best: int) -> "RunState":
        return self.after_losses(seconds).with_score(self.step, score, keep_best)

    def after_losses(self, seconds: float) -> "RunState":
        """Returns the state after an evaluation of this step whose score is another matter."""
        return dataclasses.replace(
            self, elapsed_s=self.elapsed_s + seconds, evaluated_step=self.step
        )

    def with_score(self, step: int, score: float, keep_best: int) -> "RunState":
        """Returns the state that knows the score of a step, this one or an earlier one."""
        is_best = self.best_score is None or score > self.best_score
        scores = self.scores | {str(step): score}
        best_first = sorted(scores, key=lambda step: (-scores[step], int(step)))
        return dataclasses.replace(
            self,
            best_step=step if is_best else self.best_step,
            best_score=score if is_best else self.best_score,
            evaluations_since_best=0 if is_best else self.evaluations_since_best + 1,
            scores={step: scores[step] for step in best_first[: max(1, keep_best)]},
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the state as checkpoints keep it."""
        content: dict[str, Any] = _run_state.dump_python(self, by_alias=True)
        return content

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "RunState":
        """Returns a checkpoint's state or raises a ValidationError; unknown keys are ignored."""
        return _run_state.validate_python(content)


_run_state = TypeAdapter(RunState)
