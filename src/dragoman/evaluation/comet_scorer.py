"""Scores sentences with COMET, as a program of the environment that has COMET's package:
`PYTHON comet_scorer.py PARENT < question > answer`, both JSON.

Dragoman is not installed there, so nothing of it is imported, and Python may be older. A question
without rows asks which packages are missing. Whatever COMET prints goes to standard error.
"""

from __future__ import annotations

import json
import math
import os
import sys
import threading
import time
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

NEEDED = ("comet", "pkg_resources")
"""COMET 2.2 imports the second, which setuptools has dropped, without requiring it."""
ENCODER_KEY = "pretrained_model"
CONFIG = "config.json"
ENCODER_FILES = (CONFIG, "tokenizer.json", "sentencepiece.bpe.model", "vocab.txt")
"""What an encoder is built from, before the checkpoint fills it: its sizes, and any tokenizer."""
BATCH_SENTENCES = 16
POLL_EVERY_S = 0.5


def answer_to(question: dict[str, Any]) -> dict[str, Any]:
    """Returns `missing`, or `refused` (the model), or `failed` (the scoring), or `scores`."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing or not question["rows"]:
        return {"missing": missing}
    checkpoint = Path(question["checkpoint"])
    try:
        import comet  # noqa: PLC0415
        import torch  # noqa: PLC0415

        model = comet.load_from_checkpoint(str(checkpoint))
    except Exception as error:  # whatever a file that is not one of its models makes it raise
        return {"refused": reason(error), "encoder": _absent_encoder(checkpoint)}
    try:
        predicted = model.predict(
            question["rows"],
            batch_size=BATCH_SENTENCES,
            gpus=1 if torch.cuda.is_available() else 0,
            num_workers=0,
            progress_bar=False,
        )
        scores = [float(score) for score in predicted["scores"]]
    except Exception as error:
        return {"failed": reason(error)}
    if not all(map(math.isfinite, scores)):
        return {"failed": "some scores are not finite"}
    return {"scores": scores, "version": version("unbabel-comet")}


def reason(error: Exception) -> str:
    """Returns the class of an error with the first line of its message."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _absent_encoder(checkpoint: Path) -> str | None:
    """Returns the public name of the encoder that a model needs, if it is not on this machine.

    What its absence makes COMET raise differs by release, and need not mention it.
    """
    try:
        import yaml  # type: ignore[import-untyped]  # noqa: PLC0415
        from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415

        settings = yaml.safe_load((checkpoint.parents[1] / "hparams.yaml").read_bytes())
        name = settings[ENCODER_KEY]
        if Path(name).is_dir():
            return None
        cached = {
            file for file in ENCODER_FILES if isinstance(try_to_load_from_cache(name, file), str)
        }
    except Exception:  # settings or packages that explain nothing
        return None
    return None if CONFIG in cached and len(cached) > 1 else str(name)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(POLL_EVERY_S)
    os._exit(1)


def main() -> None:
    threading.Thread(target=_end_with, args=(int(sys.argv[1]),), daemon=True).start()
    with os.fdopen(os.dup(1), "w", encoding="ascii") as answer:
        os.dup2(2, 1)
        # Python puts the folder of a program first, where `comet` is a module of Dragoman.
        here = Path(__file__).resolve().parent
        sys.path[:] = [path for path in sys.path if Path(path).resolve() != here]
        json.dump(answer_to(json.load(sys.stdin.buffer)), answer)


if __name__ == "__main__":
    main()
