"""The variants that are compared: a name, and the keys that it changes in a recipe."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from dragoman.config import load_config
from dragoman.errors import ConfigError

Overrides = Mapping[str, object]
"""Key -> value, such as sync.mode -> local."""

BASE = "fp32"
"""What all others are compared with."""


def local(mode: str, steps: int, wire: str) -> Overrides:
    return {"sync.mode": mode, "sync.local_steps": steps, "sync.wire": wire}


VARIANTS: Mapping[str, Overrides] = {
    BASE: {"sync.mode": "fp32"},
    "bf16": {"sync.mode": "bf16"},
    "accumulate-4": {"sync.mode": "accumulate", "sync.accumulate": 4},
    "local-2-4bit": local("local", 2, "4bit"),
    "local-4-4bit": local("local", 4, "4bit"),
    "local-8-bf16": local("local", 8, "bf16"),
    "local-8-4bit": local("local", 8, "4bit"),
    "local-12-4bit": local("local", 12, "4bit"),
    "diloco-30-bf16": local("diloco", 30, "bf16"),
    "diloco-30-4bit": local("diloco", 30, "4bit"),
    "auto": {"sync.mode": "auto"},
}


def has_exact_sums(variant: Overrides) -> bool:
    """Returns whether the trained model does not depend on the number of workers."""
    return variant.get("sync.mode") in ("fp32", "accumulate")


def parse_variant(text: str) -> tuple[str, Overrides]:
    """Reads a variant of the user's own, NAME:KEY=VALUE,KEY=VALUE; keys are those of [sync]."""
    name, separator, keys = text.partition(":")
    pairs = [parse_change(pair) for pair in keys.split(",")] if name and separator else []
    if not pairs:
        raise ValueError(f"{text!r} is not of the form NAME:KEY=VALUE,KEY=VALUE")
    return name, {f"sync.{key.removeprefix('sync.')}": value for key, value in pairs}


def parse_change(text: str) -> tuple[str, str]:
    """Reads KEY=VALUE."""
    key, _, value = text.partition("=")
    if not (key and value):
        raise ValueError(f"{text!r} is not of the form KEY=VALUE")
    return key, value


def as_options(overrides: Overrides) -> list[str]:
    """Returns overrides as `dragoman train` takes them."""
    return [word for text in as_texts(overrides) for word in ("--set", text)]


def as_texts(overrides: Overrides) -> list[str]:
    return [f"{key}={value}" for key, value in overrides.items()]


def refusal(recipe: Path, overrides: Overrides) -> str:
    """Returns why these settings cannot be trained; empty: they can."""
    try:
        load_config(recipe, as_texts(overrides))
    except ConfigError as error:
        return " ".join(str(error).split())
    return ""


def chosen_variants(names: Sequence[str], added: Mapping[str, Overrides]) -> dict[str, Overrides]:
    """Returns the variants to measure, with the one that all are compared with first."""
    known = {**VARIANTS, **added}
    return {name: known[name] for name in dict.fromkeys([BASE, *names, *added])}
