"""Loss in evaluation mode on pairs that stay the same for a whole run, shared by the ranks."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dragoman.batches.collate import Batch, collate, cut
from dragoman.distributed.group import Group
from dragoman.model.loss import Objective
from dragoman.shards.files import PairIds, Shards
from dragoman.sync import free_memory, is_out_of_memory
from dragoman.tokenizer import Tokenizer


class MeasuredLoss(NamedTuple):
    nats: float
    """Unsmoothed, per target token."""
    error: float | None
    """Standard error, from the scatter over sentences; None: there is only one sentence."""


class HeldOut:
    """Fixed micro-batches of fixed pairs."""

    def __init__(
        self,
        shards: Shards,
        pairs: Sequence[int] | np.ndarray[tuple[int], np.dtype[np.int64]],
        micro_batch_tokens: int,
        tokenizer: Tokenizer,
    ) -> None:
        self._tokenizer = tokenizer
        # Copies: a training shard that they come from need not stay on this host.
        self._micro_batches: list[list[PairIds]] = []
        widths = shards.lengths().max(axis=1)
        widest = 0
        for number in sorted(map(int, pairs), key=lambda pair: (int(widths[pair]), pair)):
            widest = max(widest, int(widths[number]))
            fits = self._micro_batches and (
                (len(self._micro_batches[-1]) + 1) * widest <= micro_batch_tokens
            )
            if fits:
                self._micro_batches[-1].append(_copied(shards[number]))
            else:
                self._micro_batches.append([_copied(shards[number])])

    def loss(self, objective: Objective, group: Group) -> float:
        """Returns unsmoothed nats per target token. Collective: every rank must call."""
        return self.measure(objective, group).nats

    def measure(self, objective: Objective, group: Group) -> MeasuredLoss:
        """Returns the loss with its standard error. Collective: every rank must call."""
        likelihood = tokens = 0.0
        sentences: list[Tensor] = []
        was_training = objective.training
        objective.eval()
        with torch.inference_mode():
            for pairs in self._micro_batches[group.rank :: group.ranks]:
                batch = collate(pairs, self._tokenizer.start, self._tokenizer.padding)
                of_batch, of_sentences = _likelihood(objective, batch, group.device)
                likelihood += of_batch
                tokens += len(batch.target_out_N)
                sentences.append(of_sentences)
        objective.train(was_training)
        likelihood, tokens = group.sums([likelihood, tokens])
        nats = likelihood / tokens
        # The loss is a ratio of two sums over sentences, and varies as the sum of these does.
        beyond = [of_sentences[0] - nats * of_sentences[1] for of_sentences in sentences]
        squares = math.fsum(float(each.square().sum()) for each in beyond)
        squares, count = group.sums([squares, float(sum(map(len, beyond)))])
        if count < 2:
            return MeasuredLoss(nats, None)
        return MeasuredLoss(nats, math.sqrt(squares * count / (count - 1)) / tokens)


def _copied(pair: PairIds) -> PairIds:
    return PairIds(np.array(pair.source), np.array(pair.target))


def _likelihood(objective: Objective, batch: Batch, device: torch.device) -> tuple[float, Tensor]:
    """Returns the negative log likelihood in nats, and [2, B]: that and the tokens by sentence.

    In halves where memory runs out: no other rank takes part in it, so that this one can help
    itself.
    """
    try:
        sums = objective(batch.to(device))
        return sums.likelihood.item(), _by_sentence(batch, sums.likelihood_N.cpu())
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error) or len(batch.source_BS) == 1:
            raise
    # Not inside the handler, where the error still holds on to what was computed.
    free_memory(device)
    halves = [_likelihood(objective, half, device) for half in cut(batch, 2)]
    return sum(whole for whole, _ in halves), torch.cat([each for _, each in halves], dim=1)


def _by_sentence(batch: Batch, likelihood_N: Tensor) -> Tensor:
    sentences, width = batch.target_in_BT.shape
    sentence_N = batch.token_positions_N // width
    values = torch.stack([likelihood_N.double(), torch.ones_like(likelihood_N).double()])
    return torch.zeros(2, sentences, dtype=torch.float64).index_add_(1, sentence_N, values)


def fixed_sample(
    available: int, wanted: int, seed: int
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Returns the numbers of `wanted` pairs out of `available`, the same for the same seed."""
    keys = np.random.Philox(key=np.array([seed, 1 << 63], dtype=np.uint64)).random_raw(available)
    return np.sort(np.argsort(keys, kind="stable")[:wanted])
