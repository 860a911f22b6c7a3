"""Dragoman trains translation models across machines and guides its user through the run.

import dragoman

result = dragoman.train("recipes/demo.toml", workers=2)
dragoman.diagnose(result.run)["trained"].verdict
dragoman.Translator.load(result.run).translate(["The old baker sleeps."])
"""

import importlib
import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.api import Diagnosis, TrainingResult, diagnose, prepare, train
    from dragoman.config import Config, load_config
    from dragoman.decoding.glossary import Glossary
    from dragoman.decoding.translation import Candidate, Translation
    from dragoman.decoding.translator import Translator
    from dragoman.errors import DragomanError, RunError, UserError

__version__ = "0.1.0"

__all__ = [
    "Candidate",
    "Config",
    "Diagnosis",
    "DragomanError",
    "Glossary",
    "RunError",
    "TrainingResult",
    "Translation",
    "Translator",
    "UserError",
    "__version__",
    "diagnose",
    "load_config",
    "prepare",
    "train",
]

# Imported when they are first used: torch alone takes seconds.
_MODULES = {
    "dragoman.api": ("Diagnosis", "TrainingResult", "diagnose", "prepare", "train"),
    "dragoman.config": ("Config", "load_config"),
    "dragoman.decoding.glossary": ("Glossary",),
    "dragoman.decoding.translation": ("Candidate", "Translation"),
    "dragoman.decoding.translator": ("Translator",),
    "dragoman.errors": ("DragomanError", "RunError", "UserError"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

# A library logs and leaves it to its user where that goes; the command line is such a user.
logging.getLogger(__name__).addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
