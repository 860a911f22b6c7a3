"""A recipe comes in, with what overrides it; a `Config` goes out, and as TOML again.

Paths become absolute here, once, so that a config means the same from anywhere.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import tomli_w
from pydantic import ValidationError

from dragoman.config.config import Config, config_keys
from dragoman.config.data import DataSettings
from dragoman.config.problems import problems_of
from dragoman.config.sources import source_keys
from dragoman.config.toml import parse_toml, read_toml_text
from dragoman.errors import ConfigError
from dragoman.recipes import SHIPPED, base_folder, find_recipe

Overrides = Sequence[str] | Mapping[str, Any]

PATH_KEYS = (
    "data.folder",
    "data.cache",
    "data.prepared",
    "tokenizer.model",
    "checkpoints.memory_folder",
)
"""Whose values are paths, and absolute in a config. So is the program of `notify.command` where it
is a path, and what follows `file:` in `telemetry.mlflow`; files of sources are in `data.folder`."""

_MLFLOW_FOLDER = re.compile("file:(?!/)")


def load_config(recipe: Path | str, overrides: Overrides = ()) -> Config:
    """Reads a recipe: a file, or the name of a shipped one, such as demo.

    `overrides` change keys of it: {"training.steps": 100}, or texts as for --set on the command
    line, ["training.steps=100"]. Relative paths in the recipe begin at its folder, those in
    `overrides` at the current folder; in the config they are absolute.
    """
    path = find_recipe(recipe)
    try:
        text = read_toml_text(path)
    except FileNotFoundError:
        close = difflib.get_close_matches(path.stem.lower(), SHIPPED, n=1)
        meant = f"; did you mean {close[0]}?" if close else ""
        raise ConfigError(
            f"{path}: no such recipe; name a file, or one of the shipped ones: "
            f"{', '.join(SHIPPED)}{meant}"
        ) from None
    return parse_config(text, str(path), overrides, base_folder(path))


def parse_config(
    text: str, origin: str, overrides: Overrides = (), folder: Path | None = None
) -> Config:
    """`folder` is where relative paths in the text begin; None: at the current folder, as those in
    `overrides` always do."""
    here = Path.cwd()
    tree = _with_absolute_paths(parse_toml(text, origin), folder or here)
    if isinstance(overrides, str | bytes) or not (
        isinstance(overrides, Iterable) and all(isinstance(part, str) for part in overrides)
    ):
        raise ConfigError(f"overrides = {overrides!r} should be a mapping or a list of texts")
    changes = _leaves(overrides) if isinstance(overrides, Mapping) else map(_parsed, overrides)
    for key, value in changes:
        _set(tree, key, _absolute(key, value, here))
    try:
        return Config.model_validate(tree)
    except ValidationError as error:
        known = [name for name, _, _ in config_keys()]
        of_sources = dict.fromkeys(name for _, _, keys in source_keys() for name, _, _ in keys)
        for split in ("train", "validation", "test"):
            known += [f"data.{split}.{name}" for name in of_sources]
        raise ConfigError(f"{origin}: {problems_of(error, known)}") from error


def dump_config(config: Config) -> str:
    """Returns the resolved config as TOML; reading it back gives an equal config."""
    return tomli_w.dumps(config.model_dump(mode="json", exclude_none=True))


def _leaves(overrides: Mapping[str, Any], section: str = "") -> Iterator[tuple[str, Any]]:
    """Yields dotted keys with their values; of a section, only the keys that it names."""
    for key, value in overrides.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{section}{key}.")
        else:
            yield f"{section}{key}", value


def _parsed(override: str) -> tuple[str, Any]:
    """Returns the key and the value of `section.key=value`."""
    key, equals, value = override.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {override}: write it as section.key=value")
    try:
        return key.strip(), tomllib.loads(f"x = {value}")["x"]
    except (ValueError, RecursionError):
        return key.strip(), value  # a bare word, as in --set schedule.kind=cosine


def _set(tree: dict[str, Any], key: str, value: Any) -> None:
    *sections, last = key.split(".")
    place = tree
    for section in sections:
        place = place.setdefault(section, {})
        if not isinstance(place, dict):
            raise ConfigError(f"--set {key}: {section} is not a section")
    # As TOML would have it; unknown types are refused with the key's name later.
    place[last] = os.fspath(value) if isinstance(value, os.PathLike) else value


def _with_absolute_paths(tree: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Returns a recipe whose relative paths begin at `folder`, also the one that it leaves out."""
    data = tree.get("data")
    if isinstance(data, dict):
        tree = {**tree, "data": {"folder": DataSettings.model_fields["folder"].default, **data}}
    return {key: _absolute(key, value, folder) for key, value in tree.items()}


def _absolute(key: str, value: Any, folder: Path) -> Any:
    """Returns the value of a key, or of a section, with its paths absolute."""
    if isinstance(value, Mapping):
        return {name: _absolute(f"{key}.{name}", of_it, folder) for name, of_it in value.items()}
    if key in PATH_KEYS and isinstance(value, str | os.PathLike):
        return _from_folder(os.fspath(value), folder)
    if key == "notify.command" and isinstance(value, list | tuple) and value:
        program = value[0]
        is_path = isinstance(program, str) and "/" in program  # others are found in PATH
        return [_from_folder(program, folder) if is_path else program, *value[1:]]
    if key == "telemetry.mlflow" and isinstance(value, str) and _MLFLOW_FOLDER.match(value):
        # An address, in which the characters of a folder's name that mean something are quoted.
        return "file:" + _from_folder(value.removeprefix("file:"), Path(quote(str(folder))))
    return value


def _from_folder(path: str, folder: Path) -> str:
    # What is empty means a default, and what cannot be printed is about to be refused.
    return os.path.normpath(folder / path) if path and path.isprintable() else path
