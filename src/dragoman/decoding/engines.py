"""Chooses the engine that translates, and opens it with the weights of checkpoints."""

import logging
from collections.abc import Sequence

import torch

from dragoman.decoding.engine import Engine, EngineName, Precision
from dragoman.decoding.torch_engine import TorchEngine
from dragoman.decoding.trained import Chosen, load_model
from dragoman.errors import UserError
from dragoman.rundir import RunDir

try:
    from dragoman.decoding.conversion import converted
    from dragoman.decoding.ctranslate2_engine import CTranslate2Engine, check_precision
except (ImportError, OSError) as error:  # not installed, or not for this machine
    CTRANSLATE2_PROBLEM = str(error)
else:
    CTRANSLATE2_PROBLEM = ""
"""Why CTranslate2 cannot be used; empty: it can."""

logger = logging.getLogger(__name__)


def open_engine(
    run: RunDir,
    chosen: Chosen,
    device: torch.device,
    engine: EngineName = "auto",
    precision: Precision = "float32",
) -> Engine:
    """Opens the engine asked for; "auto" takes CTranslate2 on a CPU, where it is installed.

    On a GPU, "auto" stays with torch: CTranslate2 needs CUDA libraries of its own there.
    """
    if chosen_engine(device, engine, precision) == "torch":
        return TorchEngine(load_model(chosen, device), chosen.tokenizer, device)
    check_precision(precision, device)
    with converted(run, chosen, precision) as folder:
        return CTranslate2Engine(folder, chosen.tokenizer, precision, device)


def open_ensemble(
    chosen: Sequence[Chosen],
    device: torch.device,
    engine: EngineName = "auto",
    precision: Precision = "float32",
) -> TorchEngine:
    """Opens several models that translate together, which only torch can."""
    if engine == "ctranslate2" or precision != "float32":
        asked = f"precision {precision}" if engine != "ctranslate2" else "the engine ctranslate2"
        raise UserError(
            f"{asked} translates with one model at a time, and {len(chosen)} were named; take the "
            "engine torch in float32, or name one model"
        )
    first, *others = chosen
    for other in others:
        if other.tokenizer.pieces != first.tokenizer.pieces:
            raise UserError(
                f"{other.checkpoints[-1].folder}: has another vocabulary than "
                f"{first.checkpoints[-1].folder}; models translate together only if they were "
                "trained with the same tokenizer"
            )
    models = [load_model(each, device) for each in chosen]
    return TorchEngine(models[0], first.tokenizer, device, tuple(models[1:]))


def chosen_engine(device: torch.device, engine: EngineName, precision: Precision) -> EngineName:
    """Returns torch or ctranslate2; refuses what cannot be had."""
    if engine == "torch" and precision != "float32":
        raise UserError(
            f"precision {precision} needs the engine ctranslate2; torch translates in float32"
        )
    if engine == "torch" or (engine == "auto" and precision == "float32" and device.type != "cpu"):
        return "torch"
    if CTRANSLATE2_PROBLEM:
        if engine == "auto" and precision == "float32":
            logger.info(f"translating with torch: CTranslate2 is missing ({CTRANSLATE2_PROBLEM})")
            return "torch"
        raise UserError(
            f"the engine ctranslate2 cannot be loaded ({CTRANSLATE2_PROBLEM}); install it with "
            "`pip install ctranslate2`, or take the engine torch in float32"
        )
    return "ctranslate2"
