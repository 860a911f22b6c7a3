"""Trains with eole for some steps: python run_eole.py JOB. Runs in eole's own environment."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import torch
from eole.bin.run.train import train
from eole.config.run import TrainConfig
from eole.modules.transformer_mlp import MLP
from eole.trainer import Trainer
from step_log import log_optimizer_steps, read_job


def main() -> None:
    job = read_job()
    torch.set_num_threads(job.threads)
    count_tokens_in(Trainer, job)
    train(TrainConfig(**settings(job)))


def count_tokens_in(trainer: type[Trainer], job: SimpleNamespace) -> None:
    """Makes the trainer log its steps, and sets the one kind of dropout that has no option."""
    original = trainer.train
    tokens = 0

    def counted(batches: Iterator[Any], padding: int) -> Iterator[Any]:
        nonlocal tokens
        for batch, bucket in batches:
            tokens = int(batch["tgt"][:, 1:].ne(padding).sum())
            yield batch, bucket

    def train_counted(self: Trainer, batches: Iterator[Any], *rest: Any, **named: Any) -> Any:
        for module in self.model.modules():
            if isinstance(module, MLP):
                module.dropout_1.p = job.activation
        print(sum(p.numel() for p in self.model.parameters()), "parameters")
        return original(self, counted(batches, self.train_loss.padding_idx), *rest, **named)

    trainer.train = train_counted
    log_optimizer_steps(job, lambda: tokens)


def settings(job: SimpleNamespace) -> dict[str, Any]:
    return {
        "seed": 1,
        "share_vocab": True,
        "src_vocab": f"{job.text}/pieces.txt",
        "src_vocab_size": job.vocabulary,
        "tgt_vocab_size": job.vocabulary,
        "save_data": job.scratch,
        "overwrite": True,
        "transforms": [],
        "report_every": 1_000_000,
        "data": {
            "corpus": {
                "path_src": f"{job.text}/train.en",
                "path_tgt": f"{job.text}/train.de",
                "transforms": [],
                "weight": 1,
            },
        },
        "training": {
            "model_path": f"{job.scratch}/model",
            "compute_dtype": "fp32",
            "batch_type": "tokens",
            "batch_size": job.batch_tokens,
            "normalization": "tokens",
            # One bucket holds the whole corpus, and is filled before the first step.
            "bucket_size": job.pairs,
            "num_workers": 0,
            "optim": "adam",
            "learning_rate": 1e-4,
            "max_grad_norm": 0,
            "dropout": [job.residual],
            "attention_dropout": [job.attention],
            "label_smoothing": job.label_smoothing,
            "log_attention_entropy": False,
            "train_steps": 1_000_000,
            "valid_steps": 1_000_000,
            "save_checkpoint_steps": 1_000_000,
        },
        "model": {
            "architecture": "transformer",
            "layers": job.layers,
            "hidden_size": job.width,
            "heads": job.heads,
            "transformer_ff": job.filter,
            "add_ffnbias": True,
            "position_encoding_type": "SinusoidalInterleaved",
            "share_embeddings": True,
            "share_decoder_embeddings": True,
            "embeddings": {
                "word_vec_size": job.width,
                "position_encoding_type": "SinusoidalInterleaved",
            },
        },
    }


if __name__ == "__main__":
    main()
