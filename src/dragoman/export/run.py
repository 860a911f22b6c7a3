"""Exports a run: a checkpoint comes in, a whole folder of one format goes out, or nothing."""

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple

import torch

from dragoman import __version__
from dragoman.checkpoints.folders import write_file
from dragoman.config import Config, load_config
from dragoman.decoding.engine import Precision
from dragoman.decoding.trained import Chosen, choose, load_model
from dragoman.errors import DragomanError, UserError, storage_errors
from dragoman.evaluation.scores import all_scores
from dragoman.export import (
    argos_format,
    ctranslate2_format,
    huggingface_format,
    safetensors_format,
)
from dragoman.export.content import Content
from dragoman.export.model_card import CardFacts, architecture_of, model_card
from dragoman.model.size import count_parameters
from dragoman.report.content import Answer
from dragoman.report.write import read_report
from dragoman.rundir import RunDir, sync_folder
from dragoman.shards.passport import Passport, PreparedData

Format = Literal["ctranslate2", "huggingface", "argos", "safetensors"]


class _Writer(NamedTuple):
    write: Callable[[Path, Content, Precision], None]
    usage: str
    has_integers: bool


_WRITERS: dict[Format, _Writer] = {
    "ctranslate2": _Writer(
        ctranslate2_format.write_ctranslate2, ctranslate2_format.USAGE, has_integers=True
    ),
    "argos": _Writer(argos_format.write_argos, argos_format.USAGE, has_integers=True),
    "huggingface": _Writer(
        lambda folder, content, _: huggingface_format.write_huggingface(folder, content),
        huggingface_format.USAGE,
        has_integers=False,
    ),
    "safetensors": _Writer(
        lambda folder, content, _: safetensors_format.write_safetensors(folder, content),
        safetensors_format.USAGE,
        has_integers=False,
    ),
}


def export_run(
    run: RunDir,
    to: Format,
    folder: Path,
    checkpoint: str = "best",
    average: int = 1,
    precision: Precision = "float32",
    license_name: str = "",
) -> list[int]:
    """Writes the folder, which must be new or empty; returns the steps of the weights.

    The files are written aside and renamed, so that the folder is whole or as it was before. What a
    process leaves that is killed, the next export to the same folder removes.
    """
    writer = _WRITERS[to]
    if precision != "float32" and not writer.has_integers:
        raise UserError(f"precision {precision} is for ctranslate2 and argos; {to} has float32")
    _check_folder(folder)
    chosen = choose(run, checkpoint, average)
    if not run.config.exists():
        raise UserError(f"{run.config}: is missing; export the whole run, not copied checkpoints")
    config = load_config(run.config)
    card = model_card(_card_facts(run, config, chosen, license_name))
    content = Content(
        name=config.name,
        source_language=config.data.source_language,
        target_language=config.data.target_language,
        model=chosen.model,
        weights=dict(load_model(chosen, torch.device("cpu")).state_dict()),
        tokenizer=chosen.tokenizer,
        decoding=config.decoding,
        card=card,
    )
    usage = writer.usage.format(
        folder=folder.name,
        package=f"{argos_format.package_name(content)}.argosmodel",
        beam=config.decoding.beam,
        length_penalty=config.decoding.length_penalty,
        example=_example(run),
        source_language=config.data.source_language,
        target_language=config.data.target_language,
    )
    aside = folder.with_name(f".{folder.name}-{secrets.token_hex(8)}")
    with ExitStack() as stack, storage_errors(folder, f"exporting to {to}"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(folder)
        try:
            aside.mkdir()
            with suppress(OSError):  # a file system without locks
                stack.enter_context(_locked(aside))
            writer.write(aside, content, precision)
            write_file(aside / "README.md", [f"{card}\n## How to load it\n\n{usage}".encode()])
            _sync(aside)
            aside.rename(folder)  # over an empty folder, but never over a full one
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        sync_folder(folder.parent)
    return chosen.steps


def _remove_abandoned(folder: Path) -> None:
    """Removes what exports to this folder have left that were killed."""
    ours = re.compile(rf"\.{re.escape(folder.name)}-[0-9a-f]{{16}}")
    for path in folder.parent.iterdir():
        if ours.fullmatch(path.name):
            # The lock is refused while another process writes there.
            with suppress(OSError), _locked(path):
                shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Holds a lock that goes with the process; raises OSError where another holds it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _check_folder(folder: Path) -> None:
    """Refuses, before the work, a folder that holds something."""
    with storage_errors(folder, "exporting"):
        if folder.is_dir() and not folder.is_symlink():
            if any(folder.iterdir()):
                raise UserError(f"{folder}: is not empty; name a new folder")
            if folder.samefile(
                Path.cwd()
            ):  # who stands in it would not see the one that replaces it
                raise UserError(f"{folder}: is the current folder; name a new one inside it")
        elif folder.exists() or folder.is_symlink():
            raise UserError(f"{folder}: is there and no folder; name a new folder")


def _sync(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    sync_folder(folder)


def _card_facts(run: RunDir, config: Config, chosen: Chosen, license_name: str) -> CardFacts:
    return CardFacts(
        name=config.name,
        source_language=config.data.source_language,
        target_language=config.data.target_language,
        parameters=count_parameters(chosen.model, chosen.tokenizer.size),
        architecture=architecture_of(chosen.model),
        steps=chosen.steps,
        passport=_passport_of(config),
        scores=all_scores(run),
        answers=_answers_of(run),
        license=license_name,
        version=__version__,
    )


def _passport_of(config: Config) -> Passport | None:
    try:
        return PreparedData.open(config.prepared_folder).passport
    except DragomanError:
        return None


def _answers_of(run: RunDir) -> list[Answer]:
    try:
        return read_report(run).answers
    except DragomanError:
        return []


def _example(run: RunDir) -> str:
    """Returns a short sentence of the source language, to be shown in the card."""
    for scored in all_scores(run):
        for sample in scored.samples:
            if '"' not in sample["source"] and "\\" not in sample["source"]:
                return sample["source"]
    return "Hello."
