"""How far a run is: one immutable value, which is also what a checkpoint keeps."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from dragoman.training.numbers import Numbers


@dataclass(frozen=True)
class RunState:
    step: int = 0
    tokens: int = 0
    elapsed_s: float = 0.0
    """Of all attempts together, up to this step."""
    best_step: int | None = None
    best_score: float | None = None
    """Higher is better, whatever the score is made of."""
    evaluations_since_best: int = 0
    evaluated_step: int = 0
    """Of the last evaluation; a run that is stopped when one is due makes up for it."""
    scores: dict[str, float] = field(default_factory=dict)
    """Step -> score of the evaluations whose checkpoints may be kept as the best."""
    loss_scaling: dict[str, float] = field(default_factory=dict)
    """fp16 only: the scaler's own state."""
    numbers: Numbers = field(default_factory=Numbers)
    """What the run remembers of its losses, to see when they go wrong."""

    def after_step(self, tokens: int, seconds: float) -> "RunState":
        return dataclasses.replace(
            self,
            step=self.step + 1,
            tokens=self.tokens + tokens,
            elapsed_s=self.elapsed_s + seconds,
        )

    def after_evaluation(self, score: float, seconds: float, keep_best: int) -> "RunState":
        is_best = self.best_score is None or score > self.best_score
        scores = self.scores | {str(self.step): score}
        best_first = sorted(scores, key=lambda step: (-scores[step], int(step)))
        return dataclasses.replace(
            self,
            elapsed_s=self.elapsed_s + seconds,
            best_step=self.step if is_best else self.best_step,
            best_score=score if is_best else self.best_score,
            evaluations_since_best=0 if is_best else self.evaluations_since_best + 1,
            evaluated_step=self.step,
            scores={step: scores[step] for step in best_first[: max(1, keep_best)]},
        )

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "RunState":
        known = {f.name for f in dataclasses.fields(cls)}
        values = {name: value for name, value in content.items() if name in known}
        return cls(**values | {"numbers": Numbers.from_json(values.get("numbers", {}))})
