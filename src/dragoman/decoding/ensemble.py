"""One model or several that decode together: pieces come in, the logits of the next piece go out.

The models may differ in shape; they share the vocabulary. The probability of a piece is the mean of
its probabilities: one model that is sure of a piece can carry it, and none can veto it, as a zero
in the mean of logarithms would.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from dragoman.batches.collate import SourceBatch
from dragoman.model.transformer import Prefix, Source, Transformer

Models = Sequence[Transformer]


class Decoding(NamedTuple):
    """What each model keeps of the sentences and of the pieces decoded so far."""

    sources: tuple[Source, ...]
    prefixes: tuple[Prefix, ...]

    def keep(self, sentences: Tensor) -> "Decoding":
        """Drops all other sentences; their rows have to be dropped with `reorder`."""
        return self._replace(sources=tuple(source.rows(sentences) for source in self.sources))

    def reorder(self, rows: Tensor) -> "Decoding":
        """Takes the pieces so far from these rows, which may come twice or not at all."""
        return self._replace(prefixes=tuple(prefix.rows(rows) for prefix in self.prefixes))


def begin(models: Models, batch: SourceBatch) -> Decoding:
    """Encodes the sentences with every model."""
    sources = tuple(model.encode(batch.source_BS, batch.source_mask) for model in models)
    return Decoding(sources, tuple(Prefix() for _ in models))


def advance(models: Models, tokens_R: Tensor, decoding: Decoding) -> tuple[Tensor, Decoding]:
    """Returns logits [R, V] after one more piece per row; their softmax is the probability.

    Those of a single model are its own; those of several are logarithms of mean probabilities.
    """
    all_logits, prefixes = [], []
    for model, source, prefix in zip(models, decoding.sources, decoding.prefixes, strict=True):
        hidden_RD, longer = model.step(tokens_R, prefix, source)
        all_logits.append((hidden_RD @ model.output_weight.T).float())
        prefixes.append(longer)
    decoding = decoding._replace(prefixes=tuple(prefixes))
    if len(all_logits) == 1:
        return all_logits[0], decoding
    log_probs_MRV = torch.stack([logits.log_softmax(dim=1) for logits in all_logits])
    return log_probs_MRV.logsumexp(dim=0) - math.log(len(all_logits)), decoding


@torch.inference_mode()
def attention(models: Models, batch: SourceBatch, target_BT: Tensor) -> Tensor:
    """Returns [B, T, S]: what each target position attends to, the mean over the models."""
    each = [
        model.attention(model.encode(batch.source_BS, batch.source_mask), target_BT)
        for model in models
    ]
    return torch.stack(each).mean(dim=0)
