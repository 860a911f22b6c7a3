"""What both candidates train: a recipe with Multi30k, and the same pieces written for the loop.

The recipe comes in with a few overrides; `dragoman train` gets the same ones. What our preparation
makes of the corpus goes out as ids of the training pairs and as text of the held-out ones.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dragoman.config import Config, CorpusSource, TextSource, load_config
from dragoman.model.size import count_parameters
from dragoman.preparation import prepare
from dragoman.shards.passport import PreparedData

HELD_OUT = ("validation", "test")
SPECIAL_PIECES = (0, 2, 3)
"""Padding, start and end, as the loop has them."""
WARM_UP_STEPS, CLIP_NORM = 400, 1.0
"""Of the plain loop; after the warm-up its rate falls with the inverse square root of the step."""
PEAK_RATE, LOOP_DROPOUT = 0.004, 0.2
"""Of the plain loop, unless others are given: those with which it is known to learn best, 36 BLEU.
It drops residuals alone: with attention dropout, this rate brings it to 0.7 BLEU in 500 steps, and
half the rate to 13.1 in 461 (2026-11)."""
BEAM = 5
"""For the test set."""


class Task(NamedTuple):
    recipe: str
    overrides: list[str]
    """As `dragoman train --set` takes them."""
    config: Config
    folder: Path
    parameters: int
    """Of our model."""

    def text(self, split: str, side: str) -> Path:
        """Names the text of a held-out split; a side is source or target."""
        return self.folder / f"{split}.{side}"

    @property
    def corpus(self) -> Path:
        return self.folder / "corpus.npz"

    @property
    def tokenizer(self) -> Path:
        return self.folder / "tokenizer.model"


def write_task(recipe: str, overrides: Sequence[str], folder: Path) -> Task:
    """Prepares the data of a recipe below `folder` and writes what the loop reads."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = [f"data.prepared={folder / 'prepared'}", *overrides]
    config = load_config(recipe, settings)
    prepared = prepare(config)
    parameters = count_parameters(config.model, prepared.tokenizer().size)
    task = Task(recipe, settings, config, folder, parameters)
    _write_pieces(prepared, task)
    for split in HELD_OUT:
        for side, lines in zip(("source", "target"), prepared.text(split), strict=True):
            text = "".join(f"{line}\n" for line in lines)
            task.text(split, side).write_text(text, encoding="utf-8", newline="\n")
    return task


def write_loop_job(
    task: Task,
    threads: int,
    evaluate_every: int,
    scratch: Path,
    peak_rate: float = PEAK_RATE,
    dropout: float = LOOP_DROPOUT,
) -> Path:
    """Writes what `peers/hugging_face.py` reads: the recipe's model and data, a plain schedule."""
    config = task.config
    content = {
        "corpus": str(task.corpus),
        "tokenizer": str(task.tokenizer),
        "validation_source": str(task.text("validation", "source")),
        "validation_target": str(task.text("validation", "target")),
        "test_source": str(task.text("test", "source")),
        "target_language": config.data.target_language,
        "log": str(scratch / "log.jsonl"),
        "weights": str(scratch / "best.pt"),
        "translations": str(scratch / "test.txt"),
        "threads": threads,
        "seed": config.training.seed,
        "vocabulary": config.tokenizer.vocabulary,
        "encoder_layers": config.model.encoder_layers,
        "decoder_layers": config.model.decoder_layers,
        "width": config.model.width,
        "heads": config.model.heads,
        "filter": config.model.filter,
        "residual": dropout,
        "attention": 0.0,
        "activation": 0.0,
        "label_smoothing": config.training.label_smoothing,
        "tokens_per_update": config.training.tokens_per_update,
        "betas": [config.optimizer.beta1, config.optimizer.beta2],
        "epsilon": config.optimizer.epsilon,
        "peak": peak_rate,
        "warmup_steps": WARM_UP_STEPS,
        "clip_norm": CLIP_NORM,
        "evaluate_every": evaluate_every,
        "beam": BEAM,
        "length_penalty": 1.0,
        "max_length_factor": config.decoding.max_length_factor,
    }
    job = scratch / "job.json"
    job.write_text(json.dumps(content, indent=1))
    return job


def renamed_sources(
    config: Config, source_language: str, target_language: str, test: str
) -> list[str]:
    """Returns overrides for other languages or another test set of the same corpus.

    Files are named <split>.<language>, maybe with more endings; empty values change nothing.
    """
    old = (config.data.source_language, config.data.target_language)
    new = (source_language or old[0], target_language or old[1])
    overrides = []
    if new != old:
        overrides += [f"data.source_language={new[0]}", f"data.target_language={new[1]}"]
    for split in ("train", *HELD_OUT):
        sources = getattr(config.data, split)
        name = test if split == "test" else ""
        if new != old or name:
            tables = [_renamed(source, old, new, name) for source in sources]
            overrides.append(f"data.{split}=[{', '.join(tables)}]")
    return overrides


def differences(config: Config) -> list[str]:
    """Returns what the recipe has and the plain loop has not."""
    optimizer, schedule, training = config.optimizer, config.schedule, config.training
    model = config.model
    found = {
        f"attention dropout {model.attention_dropout:g}": model.attention_dropout,
        f"activation dropout {model.activation_dropout:g}": model.activation_dropout,
        f"the optimizer {optimizer.kind}": optimizer.kind != "adamw",
        f"an average of the weights (decay {optimizer.average_decay:g})": optimizer.average_decay,
        f"weight decay {optimizer.weight_decay:g}": optimizer.weight_decay,
        f"no clipping, or at another norm than {CLIP_NORM:g}": optimizer.clip_norm != CLIP_NORM,
        f"a {schedule.kind} schedule with its peak at {schedule.peak:g} after "
        f"{schedule.warmup_steps:,} steps": schedule.kind != "inverse-square-root"
        or schedule.warmup_steps != WARM_UP_STEPS,
        f"subword dropout {training.subword_dropout:g}": training.subword_dropout,
        f"R-Drop {training.r_drop:g}": training.r_drop,
        f"{training.precision} arithmetic": training.precision != "fp32",
    }
    return [what for what, is_there in found.items() if is_there]


def _write_pieces(prepared: PreparedData, task: Task) -> None:
    tokenizer = prepared.tokenizer()
    if (tokenizer.padding, tokenizer.start, tokenizer.end) != SPECIAL_PIECES:
        raise SystemExit(
            f"{task.recipe}: its tokenizer has other special pieces than the loop; let it learn one"
        )
    task.tokenizer.write_bytes(tokenizer.model)
    shards = prepared.shards("train")
    sequences = [ids for number in range(len(shards)) for ids in shards[number]]
    bounds = np.cumsum([0, *map(len, sequences)])
    np.savez(task.corpus, tokens=np.concatenate(sequences), bounds=bounds)


def _renamed(source: CorpusSource, old: tuple[str, str], new: tuple[str, str], name: str) -> str:
    if not isinstance(source, TextSource):
        raise SystemExit(f"a source of kind {source.kind} has no names of languages to change")
    files = []
    for file, before, after in zip((source.source, source.target), old, new, strict=True):
        stem, found, endings = file.partition(f".{before}")
        if not found:
            raise SystemExit(f"{file}: has no ending .{before} that could be changed")
        files.append(json.dumps(f"{name or stem}.{after}{endings}"))
    return f'{{kind = "text", source = {files[0]}, target = {files[1]}, weight = {source.weight}}}'
