"""Chooses the engine that translates, and opens it with the weights of checkpoints.

torch is imported only by what needs it: a converted model translates seconds earlier without.
"""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dragoman.decoding.engine import Cpu, Device, DeviceName, Engine, EngineName, Precision
from dragoman.decoding.trained import Chosen, load_model
from dragoman.distributed.gpu_driver import has_gpu_driver
from dragoman.errors import UserError
from dragoman.rundir import RunDir

if TYPE_CHECKING:
    from dragoman.decoding.torch_engine import TorchEngine

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
    run: RunDir | None,
    chosen: Chosen,
    device: Device,
    engine: EngineName = "auto",
    precision: Precision = "float32",
) -> Engine:
    """Opens the engine asked for; "auto" takes CTranslate2 on a CPU, where it is installed.

    On a GPU, "auto" stays with torch: CTranslate2 needs CUDA libraries of its own there. Converted
    models are kept in the run, if there is one.
    """
    if chosen_engine(device, engine, precision) == "torch":
        return open_torch([chosen], device)
    check_precision(precision, device)
    with converted(run, chosen, precision) as folder:
        return CTranslate2Engine(folder, chosen.tokenizer, precision, device)


def open_ensemble(
    chosen: Sequence[Chosen],
    device: Device,
    engine: EngineName = "auto",
    precision: Precision = "float32",
) -> "TorchEngine":
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
    return open_torch(chosen, device)


def open_torch(chosen: Sequence[Chosen], device: Device) -> "TorchEngine":
    """Opens one model, or several of the same vocabulary, with torch."""
    import torch  # noqa: PLC0415

    from dragoman.decoding.torch_engine import TorchEngine  # noqa: PLC0415

    where = torch.device(str(device))
    models = [load_model(each, where) for each in chosen]
    return TorchEngine(models[0], chosen[0].tokenizer, where, tuple(models[1:]))


def find_device(wanted: DeviceName) -> Device:
    """Returns where to translate; torch is asked only where there may be a GPU."""
    if wanted == "cpu" or (wanted == "auto" and not has_gpu_driver()):
        return Cpu()
    from dragoman.distributed.group import pick_device  # noqa: PLC0415

    return pick_device(wanted)


def chosen_engine(device: Device, engine: EngineName, precision: Precision) -> EngineName:
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
