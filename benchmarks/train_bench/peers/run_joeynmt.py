"""Trains with JoeyNMT for some steps: python run_joeynmt.py JOB. Runs in its own environment."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from joeynmt.batch import Batch
from joeynmt.helpers import make_model_dir
from joeynmt.training import TrainManager, train
from joeynmt.transformer_layers import MultiHeadedAttention, PositionwiseFeedForward
from step_log import log_optimizer_steps, read_job


def main() -> None:
    job = read_job()
    torch.set_num_threads(job.threads)
    count_tokens_in(TrainManager, job)
    chosen = settings(job)
    make_model_dir(Path(chosen["model_dir"]), overwrite=True)
    train(rank=0, world_size=1, cfg=chosen, skip_test=True)


def count_tokens_in(manager: type[TrainManager], job: SimpleNamespace) -> None:
    """Makes the trainer log its steps, and sets two kinds of dropout that have no option."""
    original_step, original_train = manager._train_step, manager.train_and_validate
    tokens = 0

    def step_counted(self: TrainManager, batch: Batch) -> Any:
        nonlocal tokens
        tokens = batch.ntokens
        return original_step(self, batch)

    def train_with_dropout(self: TrainManager, *data: Any, **named: Any) -> None:
        for module in self.model.modules():
            if isinstance(module, MultiHeadedAttention):
                module.dropout.p = job.attention
            if isinstance(module, PositionwiseFeedForward):
                inner = next(m for m in module.pwff_layer if isinstance(m, torch.nn.Dropout))
                inner.p = job.activation
        print(sum(p.numel() for p in self.model.parameters()), "parameters")
        original_train(self, *data, **named)

    manager._train_step = step_counted
    manager.train_and_validate = train_with_dropout
    log_optimizer_steps(job, lambda: tokens)


def settings(job: SimpleNamespace) -> dict[str, Any]:
    layers = {
        "type": "transformer",
        "num_layers": job.layers,
        "num_heads": job.heads,
        "embeddings": {"embedding_dim": job.width, "scale": True, "dropout": job.residual},
        "hidden_size": job.width,
        "ff_size": job.filter,
        "dropout": job.residual,
        "layer_norm": "pre",
    }
    side = {"level": "word", "voc_file": f"{job.text}/pieces.txt", "max_length": 512}
    return {
        "name": "bench",
        "model_dir": f"{job.scratch}/joeynmt",
        "use_cuda": False,
        "random_seed": 1,
        "num_workers": 0,
        "data": {
            "train": f"{job.text}/train",
            "dev": f"{job.text}/valid",
            "dataset_type": "plain",
            "src": {"lang": "en", **side},
            "trg": {"lang": "de", **side},
        },
        "testing": {"batch_size": 64},
        "training": {
            "optimizer": "adam",
            "normalization": "tokens",
            "learning_rate": 1e-4,
            "learning_rate_min": 1e-9,
            "scheduling": "noam",  # there is no constant rate
            "label_smoothing": job.label_smoothing,
            "batch_type": "token",
            "batch_size": job.batch_tokens,
            "epochs": 1000,
            "logging_freq": 1_000_000,
            "validation_freq": 1_000_000,
        },
        "model": {
            "initializer": "xavier_uniform",
            "bias_initializer": "zeros",
            "embed_initializer": "xavier_uniform",
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": dict(layers),
            "decoder": dict(layers),
        },
    }


if __name__ == "__main__":
    main()
