"""Reads the settings of a run that another version may have written.

Training refuses a key that it does not know; a report of an existing run leaves it out and says so.
"""

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dragoman.config import (
    Config,
    config_keys,
    load_config,
    parse_toml,
    read_toml_text,
    sentences_of,
)
from dragoman.errors import ConfigError

_MOST_ROUNDS = 100
"""Each round leaves out all keys that are wrong, so that fewer are left to be wrong."""


def read_settings(path: Path) -> tuple[Config, list[str]]:
    """Returns the config, and a sentence for each key that this version does not understand."""
    try:
        return load_config(path), []
    except ConfigError as error:
        refusal = error
    try:
        tree = parse_toml(read_toml_text(path), str(path))
    except (OSError, ConfigError):
        raise refusal from None
    left_out: list[str] = []
    for _ in range(_MOST_ROUNDS):
        try:
            return Config.model_validate(tree), left_out
        except ValidationError as error:
            known = [name for name, _, _ in config_keys()]
            removed = [
                sentence for loc, sentence in sentences_of(error, known) if _remove(tree, loc)
            ]
            if not removed:
                break
            left_out += [f"{path}: {sentence}; this report leaves it out" for sentence in removed]
    raise refusal


def _remove(tree: dict[str, Any], loc: tuple[int | str, ...]) -> bool:
    """Removes what stands at `loc`; False: nothing does, as where a key is missing."""
    place: Any = tree
    steps = list(loc)
    while len(steps) > 1:
        step = steps.pop(0)
        if isinstance(place, dict) and step not in place:
            continue  # the kind of a source, which pydantic names in its path
        place = place[step]
    if not steps:
        return False
    last = steps[0]
    if isinstance(place, dict):
        return place.pop(last, None) is not None
    if isinstance(place, list) and isinstance(last, int) and last < len(place):
        place.pop(last)
        return True
    return False
