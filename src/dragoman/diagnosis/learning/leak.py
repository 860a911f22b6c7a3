"""Whether held-out pairs seem to be in the training set as well: scores too good to be true. Pure.

Preparation drops training pairs that occur in validation or test, unless it is told not to. It does
not find a source sentence that was translated in other words, or one that a prepared file brings.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dragoman.config import Config, CorpusSource
from dragoman.diagnosis.learning.evaluations import Evaluations

UNREACHED_BLEU = 70.0
"""No system reaches it with one reference on text that people wrote: two human translations of the
same text differ by more."""
CERTAIN_BLEU = 90.0
"""Nearly every sentence is the reference, word for word."""
SMALL_GAP = 0.25
"""Of the validation loss: what is learned by heart is as low on the training sample."""
SMALL_GAP_NATS = 0.05


class Leak(NamedTuple):
    """Signs of one; a text of very few patterns shows the same."""

    bleu: float
    gap: float
    """Validation loss less that of the training sample, nats; NaN: not known."""


def leak_of(config: Config, evaluations: Evaluations, scores: Sequence[float]) -> Leak | None:
    """Returns the signs of a leak; None: there are none. `scores`: BLEU of finished evaluations."""
    if _is_generated((*config.data.validation, *config.data.test)):
        return None
    found = [*scores, *evaluations.bleu.tolist()]
    bleu = max((score for score in found if math.isfinite(score)), default=0.0)
    gap = math.nan
    known = np.isfinite(evaluations.validation_loss) & np.isfinite(evaluations.train_sample_loss)
    if known.any():
        loss = float(evaluations.validation_loss[known][-1])
        gap = loss - float(evaluations.train_sample_loss[known][-1])
        has_gap = gap > max(SMALL_GAP_NATS, SMALL_GAP * loss)
    else:
        has_gap = True
    return Leak(bleu, gap) if bleu >= (CERTAIN_BLEU if has_gap else UNREACHED_BLEU) else None


def _is_generated(sources: Sequence[CorpusSource]) -> bool:
    """Sentences of a small grammar can be translated to the letter, without any leak."""
    return any(source.kind == "phrasebook" for source in sources)
