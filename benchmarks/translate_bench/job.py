"""The run's model in forms that other tools read: files in a folder, and a job that names them."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from dragoman.config import Config, DecodingSettings, load_config
from dragoman.decoding.trained import load_trained
from dragoman.export.run import export_run
from dragoman.model.transformer import sinusoids
from dragoman.rundir import RunDir
from dragoman.shards.passport import PreparedData
from dragoman.tokenizer import Tokenizer

POSITIONS = 5000
"""As many as the tables of OpenNMT-py and JoeyNMT have."""


class Task(NamedTuple):
    """What all candidates translate, and with what."""

    run: Path
    config: Config
    tokenizer: Tokenizer
    sources: list[str]
    references: list[str]
    threads: int
    folder: Path
    """Holds `ctranslate2/`, `huggingface/`, `weights.npz` and `job.json`."""

    @property
    def decoding(self) -> DecodingSettings:
        return self.config.decoding

    @property
    def job(self) -> Path:
        return self.folder / "job.json"


def write_task(run: Path, folder: Path) -> Task:
    """Writes the best checkpoint of a run for all candidates, and reads the run's test set."""
    directory = RunDir(run)
    config = load_config(directory.config)
    sources, references = PreparedData.open(config.prepared_folder).text("test")
    for to in ("ctranslate2", "huggingface"):
        export_run(directory, to, folder / to)  # type: ignore[arg-type]
    model, tokenizer, _ = load_trained(directory, "best", 1, torch.device("cpu"))
    weights = {name: weight.numpy() for name, weight in model.state_dict().items()}
    positions = sinusoids(0, POSITIONS, config.model.width, torch.device("cpu"))
    np.savez(folder / "weights.npz", **weights, positions=positions.numpy())
    task = Task(
        run, config, tokenizer, sources, references, torch.get_num_threads(), folder.resolve()
    )
    task.job.write_text(json.dumps(_job(task)))
    return task


def _job(task: Task) -> dict[str, object]:
    """Returns what the scripts in `peers` read."""
    shape, tokenizer = task.config.model, task.tokenizer
    return {
        "scratch": str(task.folder),
        "weights": str(task.folder / "weights.npz"),
        "hugging_face": str(task.folder / "huggingface"),
        "threads": task.threads,
        "length_penalty": task.decoding.length_penalty,
        "pieces": tokenizer.pieces,
        "padding": tokenizer.padding,
        "unknown": tokenizer.unknown,
        "start": tokenizer.start,
        "end": tokenizer.end,
        "encoder_layers": shape.encoder_layers,
        "decoder_layers": shape.decoder_layers,
        "width": shape.width,
        "heads": shape.heads,
        "filter": shape.filter,
    }
