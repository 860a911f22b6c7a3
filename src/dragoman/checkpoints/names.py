"""The names of a checkpoint's folders and files, and what they hold. Without torch."""

import os
import re
from pathlib import Path

from dragoman.errors import storage_errors

FORMAT = 2
"""Of the files and of the model that they are weights of: in format 1, positions began at 0."""

MODEL = "model.safetensors"
OPTIMIZER = "optimizer.safetensors"
STATE = "state.json"
TOKENIZER = "tokenizer.model"
MANIFEST = "manifest.json"

CONTENTS = {
    MODEL: "the weights that translate, an average if the run keeps one: with the tokenizer, all "
    "that is needed to translate",
    OPTIMIZER: "the optimizer's state, and the weights that train if an average translates: needed "
    "to resume training",
    STATE: "how far the run is, the model's shape and languages",
    TOKENIZER: "SentencePiece: text to pieces and back",
    MANIFEST: "size and SHA-256 of each of these files",
}

LATEST, BEST = "latest", "best"

# Temporary folders. Only REPLACED may still be needed: while the folder of its step is missing, it
# is the checkpoint of that step.
UNFINISHED = ".unfinished-"
REPLACED = ".replaced-"
REMOVED = ".removed-"

_FOLDER = re.compile(r"step-(\d{8,})")


def folder_of(step: int) -> str:
    return f"step-{step:08d}"


def step_of(folder: str) -> int | None:
    """Returns the step of a checkpoint's folder; None if it is not named like a checkpoint."""
    name = _FOLDER.fullmatch(folder)
    return int(name[1]) if name else None


def is_checkpoint(folder: Path) -> bool:
    """Returns whether a folder holds a checkpoint, whole or damaged; a copy may have any name.

    A run has a manifest.json too, so a checkpoint's is told by what lies beside it.
    """
    if not (folder / MANIFEST).is_file():
        return False
    has_name = step_of(folder.resolve().name) is not None
    return has_name or any((folder / name).is_file() for name in (STATE, MODEL))


def linked_step(root: Path, link: str) -> int | None:
    """Returns the step that `latest` or `best` points to; None if there is no such link."""
    path = root / link
    return step_of(path.readlink().name) if path.is_symlink() else None


def point_to(root: Path, link: str, folder: str) -> None:
    """Sets the link `latest` or `best` atomically."""
    with storage_errors(root / link, "setting a link"):
        beside = root / f".{link}-{os.getpid()}"
        beside.unlink(missing_ok=True)
        beside.symlink_to(folder)
        beside.replace(root / link)


def is_unfinished_link(name: str) -> bool:
    return name.startswith((f".{LATEST}-", f".{BEST}-"))
