"""A trained model from a run's checkpoints, ready to translate."""

from typing import NamedTuple

import torch

from dragoman.checkpoints.checkpoint import Checkpoint, Owner, average, check_tensors
from dragoman.checkpoints.finding import all_checkpoints, find_checkpoint, verify
from dragoman.checkpoints.names import MODEL, TOKENIZER
from dragoman.checkpoints.run_id import known_id
from dragoman.checkpoints.schema import read_state
from dragoman.errors import CorruptFileError, UserError
from dragoman.model.memory import check_memory
from dragoman.model.size import size_of
from dragoman.model.transformer import Transformer
from dragoman.rundir import RunDir
from dragoman.tokenizer import Tokenizer


class Trained(NamedTuple):
    model: Transformer
    tokenizer: Tokenizer
    steps: list[int]
    """Steps of the checkpoints that the weights come from."""


def load_trained(run: RunDir, which: str, averaged: int, device: torch.device) -> Trained:
    """Loads `which` checkpoint (best, latest or a step), or the mean of the newest `averaged`.

    Refuses checkpoints that another run has saved.
    """
    if not run.root.is_dir():
        raise UserError(f"{run.root}: no such run; runs are kept in the folder runs by default")
    # Without an id its checkpoints cannot be distinguished from another run's.
    known = known_id(run)
    owner = {"id": known} if known else {}
    try:
        return _loaded(run, which, averaged, device, owner)
    except CorruptFileError as error:
        raise CorruptFileError(f"{error}; name another checkpoint with --checkpoint") from error


def _loaded(run: RunDir, which: str, averaged: int, device: torch.device, owner: Owner) -> Trained:
    if averaged > 1:
        chosen = all_checkpoints(run.checkpoints)[-averaged:]
        if len(chosen) < averaged:
            raise UserError(
                f"{run.checkpoints}: holds {len(chosen)} checkpoints, and {averaged} "
                "are to be averaged; ask for fewer, or keep more with checkpoints.keep_last"
            )
        for checkpoint in chosen:
            verify(checkpoint, owner)
    else:
        chosen = [find_checkpoint(run.checkpoints, which, owner)]
    model, tokenizer = _model_of(chosen[-1]), _tokenizer_of(chosen[-1])
    shapes = {name: tuple(weight.shape) for name, weight in model.named_parameters()}
    for checkpoint in chosen:
        check_tensors(checkpoint.folder / MODEL, shapes)
    model.load_state_dict(average(chosen) if averaged > 1 else chosen[0].model(), assign=True)
    return Trained(model.to(device).eval(), tokenizer, [c.step for c in chosen])


def _model_of(checkpoint: Checkpoint) -> Transformer:
    """Returns the model without weights, and without the memory for them."""
    state = read_state(checkpoint.folder)
    check_memory(state.model, state.vocabulary, size_of(state.model, state.vocabulary).weight_bytes)
    with torch.device("meta"):
        return Transformer(state.model, state.vocabulary)


def _tokenizer_of(checkpoint: Checkpoint) -> Tokenizer:
    path = checkpoint.folder / TOKENIZER
    tokenizer = Tokenizer(checkpoint.tokenizer_model(), origin=str(path))
    vocabulary = read_state(checkpoint.folder).vocabulary
    if tokenizer.size != vocabulary:
        raise CorruptFileError(
            f"{path}: has {tokenizer.size:,} pieces, and the model {vocabulary:,}"
        )
    return tokenizer
