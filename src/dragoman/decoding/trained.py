"""A trained model from a run's checkpoints, ready to translate.

Checkpoints are chosen and verified first; their weights are loaded only by who needs them, and
torch is imported only then: it takes longer than all else at the start of a translation.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from dragoman.checkpoints.checkpoint import Checkpoint, average, check_tensors
from dragoman.checkpoints.finding import all_checkpoints, find_checkpoint, verify
from dragoman.checkpoints.located import Located
from dragoman.checkpoints.names import MODEL, TOKENIZER
from dragoman.checkpoints.run_id import known_id
from dragoman.checkpoints.schema import read_state
from dragoman.config import ModelSettings
from dragoman.errors import CorruptFileError, UserError
from dragoman.model.memory import check_memory
from dragoman.model.size import size_of
from dragoman.rundir import RunDir
from dragoman.tokenizer import Tokenizer

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from dragoman.model.transformer import Transformer


class Chosen(NamedTuple):
    """Verified checkpoints whose mean translates, usually one, oldest first."""

    checkpoints: tuple[Checkpoint, ...]
    model: ModelSettings
    tokenizer: Tokenizer

    @property
    def steps(self) -> list[int]:
        return [checkpoint.step for checkpoint in self.checkpoints]


class Trained(NamedTuple):
    model: "Transformer"
    tokenizer: Tokenizer
    steps: list[int]
    """Steps of the checkpoints that the weights come from."""


def load_trained(run: RunDir, which: str, averaged: int, device: "torch.device") -> Trained:
    """Loads `which` checkpoint (best, latest or a step), or the mean of the newest `averaged`."""
    chosen = choose(run, which, averaged)
    return Trained(load_model(chosen, device), chosen.tokenizer, chosen.steps)


def choose(run: RunDir, which: str, averaged: int) -> Chosen:
    """Returns `which` checkpoint (best, latest or a step), or the newest `averaged`, verified.

    Refuses checkpoints that another run has saved.
    """
    if not run.root.is_dir():
        raise UserError(f"{run.root}: no such run; runs are kept in the folder runs by default")
    if not (run.config.exists() or run.checkpoints.is_dir()):
        raise UserError(
            f"{run.root}: is neither a run nor a checkpoint; name such a folder, such as runs/demo "
            "or runs/demo/checkpoints/best"
        )
    # Without an id its checkpoints cannot be distinguished from another run's.
    known = known_id(run)
    owner = {"id": known} if known else {}
    with _advice():
        if averaged == 1:
            checkpoints = [find_checkpoint(run.checkpoints, which, owner)]
        else:
            checkpoints = all_checkpoints(run.checkpoints)[-averaged:]
            if len(checkpoints) < averaged:
                raise UserError(
                    f"{run.checkpoints}: holds {len(checkpoints)} checkpoint(s), and {averaged} "
                    "are to be averaged; ask for fewer, or keep more with checkpoints.keep_last"
                )
            for checkpoint in checkpoints:
                verify(checkpoint, owner)
        settings = read_state(checkpoints[-1].folder).model
        return Chosen(tuple(checkpoints), settings, _tokenizer_of(checkpoints[-1]))


def choose_located(located: Located, which: str, averaged: int) -> Chosen:
    """Returns the checkpoint that a path is, or of a run the one that `choose` takes."""
    if located.run is not None:
        return choose(located.run, located.checkpoint or which, averaged)
    with _advice():
        checkpoint = Checkpoint(located.path.resolve())
        verify(checkpoint)
        settings = read_state(checkpoint.folder).model
        return Chosen((checkpoint,), settings, _tokenizer_of(checkpoint))


def load_model(chosen: Chosen, device: "torch.device") -> "Transformer":
    """Loads the weights, or their mean, in evaluation mode."""
    from dragoman.model.transformer import without_weights  # noqa: PLC0415

    settings, vocabulary = chosen.model, chosen.tokenizer.size
    check_memory(settings, vocabulary, size_of(settings, vocabulary).weight_bytes)
    model = without_weights(settings, vocabulary)
    model.load_state_dict(_weights_of(chosen, model), assign=True)
    return model.to(device).eval()


def _weights_of(chosen: Chosen, model: "Transformer") -> "dict[str, Tensor]":
    shapes = {name: tuple(weight.shape) for name, weight in model.named_parameters()}
    with _advice():
        for checkpoint in chosen.checkpoints:
            check_tensors(checkpoint.folder / MODEL, shapes)
        first, *others = chosen.checkpoints
        return average([first, *others]) if others else first.model()


def _tokenizer_of(checkpoint: Checkpoint) -> Tokenizer:
    path = checkpoint.folder / TOKENIZER
    tokenizer = Tokenizer(checkpoint.tokenizer_model(), origin=str(path))
    vocabulary = read_state(checkpoint.folder).vocabulary
    if tokenizer.size != vocabulary:
        raise CorruptFileError(
            f"{path}: has {tokenizer.size:,} pieces, and the model {vocabulary:,}"
        )
    return tokenizer


@contextmanager
def _advice() -> Iterator[None]:
    try:
        yield
    except CorruptFileError as error:
        raise CorruptFileError(f"{error}; name another checkpoint with --checkpoint") from error
