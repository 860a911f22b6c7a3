"""What to do about learning that goes wrong or is not over: advice with commands for this run."""

import math
import shlex
from collections.abc import Mapping
from pathlib import Path

from dragoman.config import PRESETS, Config, TextSource
from dragoman.diagnosis.commands import (
    limits_beyond,
    train_command,
    train_on_command,
    with_settings,
)
from dragoman.diagnosis.findings import Advice
from dragoman.diagnosis.learning.kept import best_kept
from dragoman.diagnosis.learning.rate_level import lower_rate, rate_setting
from dragoman.diagnosis.learning.repeated import repeated
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.training.claim import incompatible_changes

_MORE_DROPOUT, _DROPOUT_STEP, _MOST_DROPOUT = 0.3, 0.1, 0.5
LARGEST_WIDTH = 512
"""Of the models that are advised where a smaller one does not learn its pairs."""
_ADDRESS = "://"


def train_on(run: RunFacts, until_step: int, because: str) -> list[Advice]:
    """Returns how to train until this step; empty while the run goes on by itself, or would fail
    again where it failed before.

    Where training refuses to continue, as with another end of a cosine, it is a new run.
    """
    if not run.attempts or run.attempts[-1].state == "training":
        return []
    if any(fault.attempt == run.attempts[-1].number for fault in repeated(run.faults.faults)):
        return []
    every = run.config.evaluation.every_steps
    until_step = math.ceil(until_step / every) * every
    command = train_on_command(run, until_step)
    longer = with_settings(run.config, limits_beyond(run, until_step))
    if incompatible_changes(run.config, longer):
        what = f"Train a new run with a schedule that ends at step {until_step:,}"
    elif run.record.checkpoints:
        newest = run.record.checkpoints[-1].step
        what = f"Train on to step {until_step:,}, from the checkpoint of step {newest:,}"
    else:
        what = (
            f"Train on to step {until_step:,}, where this run has its checkpoints (there are none "
            "in this folder)"
        )
    return [Advice(f"{what}: {because}.", command)]


def use_best(run: RunFacts, because: str) -> list[Advice]:
    """Returns the advice to use the best checkpoint; empty: there is none to use."""
    best = best_kept(run)
    if best is None:
        return []
    folder = shlex.quote(str(run.record.directory.root))
    which = "best" if best.name == run.record.best_checkpoint else str(best.step)
    return [
        Advice(
            f"Translate with the checkpoint of step {best.step:,}: {because}.",
            f"dragoman translate {folder} --checkpoint {which}",
        )
    ]


def lower_the_rate(run: RunFacts, because: str) -> Advice:
    settings = lower_rate(run.config)
    if not run.config.optimizer.clip_norm:
        settings["optimizer.clip_norm"] = 1.0
    clipped = " and clipped gradients" if "optimizer.clip_norm" in settings else ""
    return Advice(
        f"Start a new run with a lower {rate_setting(run.config)}{clipped}: {because}.",
        train_command(run, settings, new_run=True),
    )


def another_precision(run: RunFacts, because: str) -> list[Advice]:
    """Returns the advice to leave fp16, whose range is small; empty for other precisions."""
    if run.config.training.precision != "fp16":
        return []
    settings: dict[str, object] = {"training.precision": "bf16"}
    return [Advice(f"Start a new run with bf16: {because}.", train_command(run, settings, True))]


def more_dropout(run: RunFacts, because: str) -> Advice:
    now = run.config.model.dropout
    more = round(min(_MOST_DROPOUT, max(_MORE_DROPOUT, now + _DROPOUT_STEP)), 2)
    return Advice(
        f"For a better model add training pairs, or start a new run with more dropout: {because}.",
        train_command(run, {"model.dropout": max(now, more)}, new_run=True),
    )


def larger_model(run: RunFacts, because: str) -> list[Advice]:
    """Returns the advice to take the next larger shape; empty: there is none."""
    shape = _next_larger(run.config)
    if shape is None:
        return []
    settings = {f"model.{key}": value for key, value in shape.items()}
    return [
        Advice(
            f"Start a new run with a larger model ({shape['preset']}): {because}.",
            train_command(run, settings, new_run=True),
        )
    ]


def inspect_pairs(run: RunFacts, because: str) -> Advice:
    """Returns how to see some training pairs side by side, or those that cleaning dropped."""
    data = run.config.data
    source = data.train[0]
    command = ""
    if isinstance(source, TextSource):
        sides = [_shown(name, data.folder) for name in (source.source, source.target)]
        if all(sides):
            command = f"paste {' '.join(sides)} | shuf -n 10"
    if command:
        return Advice(f"See whether lines of both sides belong together: {because}.", command)
    config = shlex.quote(str(run.record.directory.config))
    return Advice(
        f"See what kinds of pairs cleaning drops: {because}.",
        f"dragoman prepare {config} --explain 3",
    )


def find_leak(run: RunFacts, split: str, because: str) -> Advice:
    """Returns how to count the sentences of test or validation that are in the training set."""
    data = run.config.data
    train, held_out = data.train[0], (data.test if split == "test" else data.validation)[0]
    if isinstance(train, TextSource) and isinstance(held_out, TextSource):
        patterns, text = _shown(held_out.source, data.folder), _shown(train.source, data.folder)
        if patterns and text:
            return Advice(
                f"Count the lines of the training set that are also held out: {because}.",
                f"grep -cxFf {patterns} {text}",
            )
    config = shlex.quote(str(run.record.directory.config))
    return Advice(
        "See how many training pairs are 'in validation or test', and whether similar ones are "
        f"left: {because}.",
        f"dragoman prepare {config} --explain 3",
    )


def without_leaks(run: RunFacts, because: str) -> list[Advice]:
    """Returns the advice to drop held-out pairs from training; empty: it was so already."""
    if run.config.cleaning.drop_leaks:
        return []
    return [
        Advice(
            f"Train anew without the held-out pairs: {because}.",
            train_command(run, {"cleaning.drop_leaks": True}, new_run=True),
        )
    ]


def _next_larger(config: Config) -> Mapping[str, object] | None:
    """Returns the shape of the next preset, up to base; larger ones learn more only from very much
    data."""
    model = config.model
    for name, shape in PRESETS.items():
        is_alike = _is_deep(shape["encoder_layers"], shape["decoder_layers"]) == _is_deep(
            model.encoder_layers, model.decoder_layers
        )
        if is_alike and model.width < shape["width"] <= LARGEST_WIDTH:
            return {"preset": name, **shape}
    return None


def _is_deep(encoder_layers: int, decoder_layers: int) -> bool:
    """Returns whether the encoder is much deeper than the decoder, for fast translation."""
    return encoder_layers > 2 * decoder_layers


def _shown(name: str, folder: str) -> str:
    """Returns what a shell reads as the file's text; empty for what is not on this disk."""
    if _ADDRESS in name:
        return ""
    path = shlex.quote(str(Path(folder) / name))
    readers = {".gz": "zcat", ".xz": "xzcat", ".bz2": "bzcat", ".zst": "zstdcat"}
    reader = readers.get(Path(name).suffix)
    return f"<({reader} {path})" if reader else path
