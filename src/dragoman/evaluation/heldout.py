"""Loss in evaluation mode on pairs that stay the same for a whole run, shared by the ranks."""

from collections.abc import Sequence

import numpy as np
import torch

from dragoman.batches.collate import Batch, collate, cut
from dragoman.distributed.group import Group
from dragoman.model.loss import Objective
from dragoman.shards.files import Shards
from dragoman.sync import free_memory, is_out_of_memory
from dragoman.tokenizer import Tokenizer


class HeldOut:
    """Fixed micro-batches of fixed pairs."""

    def __init__(
        self,
        shards: Shards,
        pairs: Sequence[int] | np.ndarray[tuple[int], np.dtype[np.int64]],
        micro_batch_tokens: int,
        tokenizer: Tokenizer,
    ) -> None:
        self._shards, self._tokenizer = shards, tokenizer
        self._micro_batches: list[list[int]] = []
        widths = shards.lengths().max(axis=1)
        widest = 0
        for number in sorted(map(int, pairs), key=lambda pair: (int(widths[pair]), pair)):
            widest = max(widest, int(widths[number]))
            fits = self._micro_batches and (
                (len(self._micro_batches[-1]) + 1) * widest <= micro_batch_tokens
            )
            if fits:
                self._micro_batches[-1].append(number)
            else:
                self._micro_batches.append([number])

    def loss(self, objective: Objective, group: Group) -> float:
        """Unsmoothed nats per target token. Collective: every rank must call."""
        likelihood = tokens = 0.0
        was_training = objective.training
        objective.eval()
        with torch.inference_mode():
            for numbers in self._micro_batches[group.rank :: group.ranks]:
                batch = collate(
                    [self._shards[number] for number in numbers],
                    self._tokenizer.start,
                    self._tokenizer.padding,
                )
                likelihood += _likelihood(objective, batch, group.device)
                tokens += len(batch.target_out_N)
        objective.train(was_training)
        likelihood, tokens = group.sums([likelihood, tokens])
        return likelihood / tokens


def _likelihood(objective: Objective, batch: Batch, device: torch.device) -> float:
    """Negative, in nats, of all target tokens; in halves where memory runs out.

    No other rank takes part in it, so that this one can help itself.
    """
    try:
        return objective(batch.to(device)).likelihood.item()  # type: ignore[no-any-return]
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error) or len(batch.source_BS) == 1:
            raise
    # Not inside the handler, where the error still holds on to what was computed.
    free_memory(device)
    return sum(_likelihood(objective, half, device) for half in cut(batch, 2))


def fixed_sample(
    available: int, wanted: int, seed: int
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Numbers of `wanted` pairs out of `available`, the same for the same seed."""
    keys = np.random.Philox(key=np.array([seed, 1 << 63], dtype=np.uint64)).random_raw(available)
    return np.sort(np.argsort(keys, kind="stable")[:wanted])
