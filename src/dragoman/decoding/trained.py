"""A trained model from a run's checkpoints, ready to translate."""

from typing import NamedTuple

import torch

from dragoman.checkpoints.checkpoint import Checkpoint, average
from dragoman.checkpoints.finding import all_checkpoints, find_checkpoint, verify
from dragoman.config import ModelSettings
from dragoman.errors import UserError
from dragoman.model.transformer import Transformer
from dragoman.rundir import RunDir
from dragoman.tokenizer import Tokenizer


class Trained(NamedTuple):
    model: Transformer
    tokenizer: Tokenizer
    steps: list[int]
    """Of the checkpoints that the weights come from."""


def load_trained(run: RunDir, which: str, averaged: int, device: torch.device) -> Trained:
    """`which` checkpoint (best, latest or a step), or the mean of the newest `averaged`."""
    if not run.root.is_dir():
        raise UserError(f"{run.root}: no such run; the folder runs holds what was trained here")
    if averaged > 1:
        chosen = all_checkpoints(run.checkpoints)[-averaged:]
        if len(chosen) < averaged:
            raise UserError(
                f"{run.checkpoints}: holds {len(chosen)} checkpoints, and {averaged} "
                "are to be averaged; ask for fewer, or keep more with checkpoints.keep_last"
            )
        for checkpoint in chosen:
            verify(checkpoint)
        weights = average(chosen)
    else:
        chosen = [find_checkpoint(run.checkpoints, which)]
        weights = chosen[0].model()
    model = _model_of(chosen[-1])
    model.load_state_dict(weights)
    tokenizer = Tokenizer(chosen[-1].tokenizer_model())
    return Trained(model.to(device).eval(), tokenizer, [c.step for c in chosen])


def _model_of(checkpoint: Checkpoint) -> Transformer:
    state = checkpoint.state()
    return Transformer(ModelSettings.model_validate(state["model"]), state["vocabulary"])
