"""The evaluations of a run as columns, from which curves and tests are made."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from dragoman.diagnosis.estimate import Z_95
from dragoman.diagnosis.learning.robust_fit import Floats
from dragoman.telemetry.events import Evaluated


@dataclass(frozen=True)
class Evaluations:
    """Equally long columns, named as in `Evaluated`, in order of the steps. NaN: not known, or not
    finite."""

    step: Floats
    validation_loss: Floats
    train_sample_loss: Floats
    bleu: Floats
    validation_loss_error: Floats
    train_sample_loss_error: Floats
    bleu_low: Floats
    """With `bleu_high` the 95 % interval of resampled sentences."""
    bleu_high: Floats

    @classmethod
    def from_events(cls, events: Sequence[Evaluated]) -> "Evaluations":
        def column(name: str) -> Floats:
            values = [getattr(evaluated, name) for evaluated in events]
            column = np.array([np.nan if value is None else value for value in values], dtype=float)
            return np.where(np.isfinite(column), column, np.nan)

        return cls(*(column(field.name) for field in fields(cls)))

    def __len__(self) -> int:
        return len(self.step)

    def where(self, kept: npt.NDArray[np.bool_]) -> "Evaluations":
        return Evaluations(*(getattr(self, field.name)[kept] for field in fields(self)))

    @property
    def finite(self) -> "Evaluations":
        """Those with a finite validation loss."""
        return self.where(np.isfinite(self.validation_loss))

    @property
    def bleu_error(self) -> float:
        """The median standard error of BLEU, from resampled sentences; NaN: not known."""
        errors = (self.bleu_high - self.bleu_low) / (2 * Z_95)
        known = errors[np.isfinite(errors)]
        return float(np.median(known)) if len(known) else float("nan")
