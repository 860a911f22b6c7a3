"""The evaluations of a run as columns, which is what curves and tests are made from."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dragoman.diagnosis.learning.power_law import Numbers
from dragoman.telemetry.events import Evaluated


@dataclass(frozen=True)
class Evaluations:
    """Equally long columns, in order of the steps; NaN: not known, or not finite."""

    steps: Numbers
    validation: Numbers
    train_sample: Numbers
    bleu: Numbers
    validation_error: Numbers
    train_sample_error: Numbers

    def __len__(self) -> int:
        return len(self.steps)

    def where(self, kept: np.typing.NDArray[np.bool_]) -> "Evaluations":
        return Evaluations(
            self.steps[kept],
            self.validation[kept],
            self.train_sample[kept],
            self.bleu[kept],
            self.validation_error[kept],
            self.train_sample_error[kept],
        )

    @property
    def finite(self) -> "Evaluations":
        """Those with a validation loss that is a number."""
        return self.where(np.isfinite(self.validation))


def columns_of(evaluations: Sequence[Evaluated]) -> Evaluations:
    def column(name: str) -> Numbers:
        values = [getattr(evaluated, name) for evaluated in evaluations]
        numbers = np.array([np.nan if value is None else value for value in values], dtype=float)
        return np.where(np.isfinite(numbers), numbers, np.nan)

    return Evaluations(
        steps=column("step"),
        validation=column("validation_loss"),
        train_sample=column("train_sample_loss"),
        bleu=column("bleu"),
        validation_error=column("validation_loss_error"),
        train_sample_error=column("train_sample_loss_error"),
    )
