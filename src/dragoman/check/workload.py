"""What a recipe asks of hosts: a config comes in, bytes go out. Pure, without torch."""

import hashlib
import json
from typing import NamedTuple

from dragoman.config import Config
from dragoman.distributed.ring_bytes import mean_bytes_of_mode
from dragoman.model.size import size_of

_COMPUTING_KEYS = (
    "tokens_per_update",
    "micro_batch_tokens",
    "subword_dropout",
    "r_drop",
    "precision",
    "sharding",
)


class Workload(NamedTuple):
    recipe: str
    parameters: int
    flops_per_step: float
    """Of all workers together."""
    bytes_per_step: float
    """That a host sends, in the mean over steps."""
    checkpoint_bytes: int
    kept_checkpoints: int


def workload_of(
    config: Config, vocabulary: int, ranks: int, ranks_on_host: int, hosts: int
) -> Workload:
    size = size_of(config.model, vocabulary, config.optimizer, config.sync)
    training, checkpoints = config.training, config.checkpoints
    return Workload(
        recipe=config.name,
        parameters=size.parameters,
        flops_per_step=float(training.passes * size.flops_per_token * training.tokens_per_update),
        bytes_per_step=mean_bytes_of_mode(
            config.sync, size.parameters, ranks, ranks_on_host, hosts
        ),
        checkpoint_bytes=size.checkpoint_bytes,
        # One more is written before the oldest is removed.
        kept_checkpoints=checkpoints.keep_last + checkpoints.keep_best + 1,
    )


def workload_hash(config: Config, vocabulary: int) -> str:
    """Returns a hash of the settings that a step's computing and gradients depend on.

    The sync mode is not among them: what was measured serves the forecast of every mode.
    """
    tree = config.model_dump(mode="json")
    training = {key: tree["training"].get(key) for key in _COMPUTING_KEYS}
    kept = [tree["model"], tree["optimizer"], training, vocabulary]
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()
