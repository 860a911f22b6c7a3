"""A tiny objective and its micro-batches, for what ranks do with gradients."""

import torch

from dragoman.batches.collate import Batch, collate
from dragoman.config import ModelSettings
from dragoman.distributed.group import Group
from dragoman.model.loss import Objective
from dragoman.model.transformer import Transformer
from dragoman.shards.files import PairIds

CPU = torch.device("cpu")
ALONE = Group(0, 1, 0, CPU)


def objective() -> Objective:
    torch.manual_seed(1)
    shape = ModelSettings(preset="transformer-tiny", width=16, heads=2, filter=32, dropout=0.0)
    return Objective(Transformer(shape, 30), 0.1)


def micro_batches() -> list[Batch]:
    pairs = [PairIds([5, 6, 3], [7, 3]), PairIds([5, 9, 4, 3], [7, 8, 9, 3])]
    return [collate([pair], 2, 0) for pair in pairs]


def gradients_of_all() -> dict[str, torch.Tensor]:
    """Of the sum over all micro-batches, as one process computes them."""
    alone = objective()
    sum(alone(batch).smoothed for batch in micro_batches()).backward()
    return {name: weight.grad for name, weight in alone.named_parameters()}
