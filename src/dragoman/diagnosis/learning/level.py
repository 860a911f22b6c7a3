"""How good a validation loss and its BLEU are, by what translation models reach. Pure.

The loss is the model's surprise per piece, so it grows with the logarithm of the vocabulary. On
newstest2013, with 37,000 pieces, Transformer base has 1.59 nats and big 1.47 (perplexities of 4.92
and 4.33 in the Transformer paper): 14 to 15 % of the loss of a uniform guess.
"""

import math
from dataclasses import dataclass

import numpy as np

from dragoman.diagnosis.learning.evaluations import Evaluations

UNLEARNED_SHARE = 0.55
"""Of the loss of a uniform guess. A model that knows the frequencies of pieces, and nothing else,
is at about two thirds of it."""
POOR_SHARE = 0.22
"""Of the loss of a uniform guess: 2.3 nats with 32,000 pieces, half as much again as good models
have."""
POOR_BLEU = 15.0
"""Below it the gist of a text is hard to get."""
FAIR_BLEU = 20.0
"""From here on translations say more than a loss, which depends on pieces and text."""
_NEWEST = 3

SURPRISE = "the model's surprise per piece of a word; lower is better"


@dataclass(frozen=True)
class Level:
    loss: float
    """Of the newest evaluation, nats: the one that is shown."""
    usual_loss: float
    """Median of the newest evaluations, nats: the one that is judged, since single ones stray."""
    guessing: float
    """Loss of a uniform guess among all pieces, nats."""
    bleu: float
    """The best so far; NaN: not known."""
    gap: float
    """How far the loss is above the training sample's; NaN: not known."""

    @property
    def share(self) -> float:
        return self.usual_loss / self.guessing

    @property
    def has_learned_nothing(self) -> bool:
        return self.share > UNLEARNED_SHARE

    @property
    def is_poor(self) -> bool:
        """Returns whether the model is far from what translation models reach."""
        if math.isnan(self.bleu):
            return self.share > POOR_SHARE
        return self.bleu < (FAIR_BLEU if self.share > POOR_SHARE else POOR_BLEU)


def level_of(evaluations: Evaluations, vocabulary: int) -> Level:
    """`evaluations`: at least one, all with a finite validation loss."""
    bleu = evaluations.bleu[np.isfinite(evaluations.bleu)]
    newest = slice(-_NEWEST, None)
    gaps = evaluations.validation_loss[newest] - evaluations.train_sample_loss[newest]
    return Level(
        loss=float(evaluations.validation_loss[-1]),
        usual_loss=float(np.median(evaluations.validation_loss[newest])),
        guessing=math.log(max(2, vocabulary)),
        bleu=float(bleu.max()) if len(bleu) else math.nan,
        gap=float(np.median(gaps)),
    )


def loss_words(loss: float) -> str:
    """2.600 nats (the model's surprise per piece of a word; lower is better)"""
    return f"{loss:.3f} nats ({SURPRISE})"
