"""Writes one set of training pairs in the forms that the candidates read.

Multi30k comes in. Dragoman's own preparation cleans it and learns the pieces; what it keeps goes
out as text of pieces for the tools that have a loader of their own, and as padded batches for the
loops that have none. So all candidates see the same pairs, cut into the same pieces.
"""

from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sentencepiece
import tomli_w

from dragoman.batches.amounts import amounts_of
from dragoman.batches.plan import BatchPlan, Lengths
from dragoman.config import Config, load_config
from dragoman.model.size import training_flops
from dragoman.preparation import prepare
from dragoman.shards.files import Shards
from dragoman.shards.passport import PreparedData
from train_bench.task import (
    BATCH_TOKENS,
    FILTER,
    HEADS,
    LABEL_SMOOTHING,
    LAYERS,
    VOCABULARY,
    WIDTH,
    Setting,
)

SIDES = ("en", "de")
SPECIAL_PIECES = 4
"""Padding, unknown, start and end come first; every other tool adds its own."""
HELD_OUT_LINES = 16
"""A run ends with an evaluation, which is not measured and should be short."""
LITTLE_EVALUATION = {
    "every_steps": 1_000_000,
    "train_sample_pairs": 0,
    "translate_sentences": 1,
    "samples": 0,
}


class Text(NamedTuple):
    folder: Path
    """Holds train.en and train.de in pieces, valid.en and valid.de, pieces.txt, batches.npz."""
    recipe: Path
    tokens_per_update: int
    """As large as it can be with a single micro-batch an update."""
    pairs: int
    flops_per_token: float
    """Mean of the whole corpus, for each target token."""
    batch_flops: float
    """The same for the batches in batches.npz alone."""


def write_text(data: Path, folder: Path, batches: int) -> Text:
    """Prepares the pairs in `folder` and writes that many batches for the loops."""
    folder.mkdir(parents=True, exist_ok=True)
    recipe = folder / "recipe.toml"
    recipe.write_text(tomli_w.dumps(recipe_of(data, folder)))
    config = load_config(recipe)
    prepared = prepare(config)
    shards = prepared.shards("train")
    lengths = shards.lengths()
    _write_pieces(prepared, shards, folder)
    tokens_per_update, plan = largest_update(lengths, BATCH_TOKENS, micro_batches=1)
    chosen = [plan.batch(step).micro_batches[0].pairs for step in range(1, batches + 1)]
    _write_batches(shards, chosen, folder / "batches.npz")
    return Text(
        folder,
        recipe,
        tokens_per_update,
        len(shards),
        _flops_per_token(config, [lengths]),
        _flops_per_token(config, [lengths[pairs] for pairs in chosen]),
    )


def training_overrides(text: Text, setting: Setting, steps: int) -> list[str]:
    """Returns what `dragoman train` is told beside the recipe."""
    values = {
        "model.dropout": setting.residual,
        "model.attention_dropout": setting.attention,
        "model.activation_dropout": setting.activation,
        "training.tokens_per_update": text.tokens_per_update,
        "training.steps": steps,
        "training.precision": setting.precision,
    }
    return [word for key, value in values.items() for word in ("--set", f"{key}={value}")]


def write_held_out(folder: Path) -> dict[str, str]:
    """Writes a few lines that stand for validation pairs; returns the source of a recipe."""
    for side in SIDES:
        lines = [f"{number}\n" for number in range(HELD_OUT_LINES)]
        (folder / f"held-out.{side}").write_text("".join(lines))
    source, target = (str(folder / f"held-out.{side}") for side in SIDES)
    return {"kind": "text", "source": source, "target": target}


def recipe_of(data: Path, folder: Path) -> dict[str, Any]:
    """Returns the recipe of the task, with everything that it writes in `folder`."""
    return {
        "name": "bench-train",
        "data": {
            "source_language": SIDES[0],
            "target_language": SIDES[1],
            "folder": str(data),
            "prepared": str(folder / "prepared"),
            "train": [{"kind": "text", "source": "train.en.gz", "target": "train.de.gz"}],
            "validation": [write_held_out(folder)],
        },
        "tokenizer": {"vocabulary": VOCABULARY},
        "model": {
            "preset": "transformer-small",
            "encoder_layers": LAYERS,
            "decoder_layers": LAYERS,
            "width": WIDTH,
            "heads": HEADS,
            "filter": FILTER,
        },
        "training": {
            "micro_batch_tokens": BATCH_TOKENS,
            "label_smoothing": LABEL_SMOOTHING,
            "steps": 1,
        },
        "evaluation": LITTLE_EVALUATION,
    }


def _write_pieces(prepared: PreparedData, shards: Shards, folder: Path) -> None:
    tokenizer = prepared.tokenizer()
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    pieces = [processor.id_to_piece(number) for number in range(tokenizer.size)]
    (folder / "pieces.txt").write_text("\n".join(pieces[SPECIAL_PIECES:]) + "\n", encoding="utf-8")
    for column, side in enumerate(SIDES):
        lines = []
        for number in range(len(shards)):
            ids = shards[number][column][:-1]  # the end piece is added by whoever reads the text
            lines.append(" ".join(pieces[piece] for piece in ids))
        (folder / f"train.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")
        held_out = "\n".join(lines[:HELD_OUT_LINES]) + "\n"
        (folder / f"valid.{side}").write_text(held_out, encoding="utf-8")


def largest_update(
    lengths: Lengths, micro_batch_tokens: int, micro_batches: int
) -> tuple[int, BatchPlan]:
    """Returns tokens and plan of the largest updates that so many micro-batches can hold."""
    for tokens in count(micro_batches * micro_batch_tokens, -32):
        plan = BatchPlan(lengths, tokens, micro_batch_tokens, seed=1)
        if plan.micro_batches_per_step == micro_batches:
            return tokens, plan
    raise AssertionError


def _write_batches(shards: Shards, batches: list[np.ndarray], path: Path) -> None:
    """Writes source, target and the lengths of both, padded with 0, for each batch."""
    arrays: dict[str, Any] = {}
    for number, pairs in enumerate(batches):
        for column, side in enumerate(("source", "target")):
            rows = [shards[int(pair)][column] for pair in pairs]
            lengths = np.array([len(row) for row in rows])
            padded = np.zeros((len(rows), int(lengths.max())), dtype=np.int64)
            for ids, row in zip(rows, padded, strict=True):
                row[: len(ids)] = ids
            arrays[f"{number}.{side}"] = padded
            arrays[f"{number}.{side}_lengths"] = lengths
    np.savez(path, **arrays)


def _flops_per_token(config: Config, lengths: list[np.ndarray]) -> float:
    amounts = amounts_of(lengths)
    return training_flops(config.model, VOCABULARY, amounts) / amounts.target_tokens
