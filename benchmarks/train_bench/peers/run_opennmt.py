"""Trains with OpenNMT-py for some steps: python run_opennmt.py JOB. Runs in its own environment."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import yaml
from onmt.bin.train import _get_parser, train
from onmt.modules.position_ffn import PositionwiseFeedForward
from onmt.trainer import Trainer
from step_log import log_optimizer_steps, read_job


def main() -> None:
    job = read_job()
    torch.set_num_threads(job.threads)
    count_tokens_in(Trainer, job)
    file = Path(job.scratch, "opennmt.yaml")
    file.write_text(yaml.safe_dump(settings(job)))
    options, _ = _get_parser().parse_known_args(["-config", str(file)])
    train(options)


def count_tokens_in(trainer: type[Trainer], job: SimpleNamespace) -> None:
    """Makes the trainer log its steps, and sets the one kind of dropout that has no option."""
    original = trainer.train
    tokens = 0

    def counted(batches: Iterator[Any], padding: int) -> Iterator[Any]:
        nonlocal tokens
        for batch, bucket in batches:
            tokens = int(batch["tgt"][:, 1:, 0].ne(padding).sum())
            yield batch, bucket

    def train_counted(self: Trainer, batches: Iterator[Any], *rest: Any, **named: Any) -> Any:
        for module in self.model.modules():
            if isinstance(module, PositionwiseFeedForward):
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
        "tgt_vocab": f"{job.text}/pieces.txt",
        "src_vocab_size": job.vocabulary,
        "tgt_vocab_size": job.vocabulary,
        "vocab_size_multiple": 1,
        "save_model": f"{job.scratch}/opennmt",
        "overwrite": True,
        "report_every": 1_000_000,
        "data": {
            "corpus": {
                "path_src": f"{job.text}/train.en",
                "path_tgt": f"{job.text}/train.de",
                "transforms": [],
                "weight": 1,
            },
        },
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
        "model_dtype": "fp32",
        "train_steps": 1_000_000,
        "valid_steps": 1_000_000,
        "save_checkpoint_steps": 1_000_000,
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "layers": job.layers,
        "hidden_size": job.width,
        "word_vec_size": job.width,
        "heads": job.heads,
        "transformer_ff": job.filter,
        "position_encoding": True,
        "share_embeddings": True,
        "share_decoder_embeddings": True,
    }


if __name__ == "__main__":
    main()
