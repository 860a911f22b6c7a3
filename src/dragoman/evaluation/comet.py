"""COMET, a learned metric, from a model that the user has on disk; nothing is downloaded.

It judges meaning, which BLEU, chrF and TER do not, and needs the package unbabel-comet and a model
of some gigabytes.
"""

import logging
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dragoman.errors import UserError
from dragoman.evaluation.scoring import MetricScore
from dragoman.evaluation.significance import draws, middle_95

BATCH_SENTENCES = 16


def comet_score(
    model: Path, sources: Sequence[str], translations: Sequence[str], references: Sequence[str]
) -> MetricScore:
    """Returns the mean of COMET's sentence scores, with the interval by resampling sentences.

    `model` is a checkpoint, or a folder as COMET's own download makes it.
    """
    loaded = _load(model)
    rows = [
        {"src": source, "mt": translation, "ref": reference}
        for source, translation, reference in zip(sources, translations, references, strict=True)
    ]
    gpus = 1 if torch.cuda.is_available() else 0
    predicted = loaded.predict(
        rows, batch_size=BATCH_SENTENCES, gpus=gpus, num_workers=0, progress_bar=False
    )
    scores = np.asarray(predicted.scores, dtype=np.float64)
    drawn = np.concatenate([times @ scores for times in draws(len(scores))]) / len(scores)
    return MetricScore("COMET", float(scores.mean()), *middle_95(drawn), f"model:{model.name}")


def checkpoint_in(model: Path) -> Path:
    """Returns the checkpoint of a model that is given by its file or its folder."""
    if model.is_file():
        return model
    found = sorted(model.glob("**/*.ckpt"))
    if not found:
        raise UserError(
            f"{model}: is no COMET model; name a .ckpt file, or the folder of a model that was "
            "downloaded before"
        )
    return found[0]


def _load(model: Path) -> Any:
    checkpoint = checkpoint_in(model)
    try:
        from comet import load_from_checkpoint  # noqa: PLC0415
    except ImportError:
        raise UserError(
            "COMET is not installed; install it with: pip install 'dragoman[comet]'"
        ) from None
    for name in ("pytorch_lightning", "lightning"):  # which announce themselves and their tips
        logging.getLogger(name).setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return load_from_checkpoint(str(checkpoint))
        except Exception as error:  # whatever a file that is not one of its models makes it raise
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise UserError(f"{checkpoint}: COMET cannot load it: {reason}") from error
