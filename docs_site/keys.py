"""The config model comes in, the page with every key of a recipe goes out."""

import types
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from docs_site.markdown import code, prose, table
from dragoman.config import SOURCE_KINDS, Config, config_keys, source_keys

INTRODUCTION = """\
# Every key of a recipe

Written from the config model when the site is built; `dragoman config --keys` prints the same
texts. A key without a default must be set, unless the model's preset sets it or its meaning says
what holds without it. `--set section.key=value` overrides a key for one command.
"""
SOURCES = """\
## Sources of data

`data.train`, `data.validation` and `data.test` are lists of sources. `kind` says which keys a
source has; [data](../data.md) shows them in use.
"""
TYPES = {bool: "true or false", int: "whole number", float: "number", str: "text"}


def keys_page() -> str:
    """Returns a section for each section of a recipe and each kind of source."""
    meanings = {key: (default, meaning) for key, default, meaning in config_keys()}
    parts = [INTRODUCTION]
    parts.append(_table(Config, [(key, *meanings[key]) for key in meanings if "." not in key]))
    for name, section in _sections():
        start = f"{name}."
        rows = [(key[len(start) :], *meanings[key]) for key in meanings if key.startswith(start)]
        parts.append(f"## {name}\n\n{_description(section)}{_table(section, rows)}")
    parts.append(SOURCES)
    for kind, _, keys in source_keys():
        source = SOURCE_KINDS[kind]
        parts.append(f"### {kind}\n\n{_description(source)}{_table(source, keys)}")
    return "\n".join(parts)


def _sections() -> Iterator[tuple[str, type[BaseModel]]]:
    for name, field in Config.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield name, field.annotation


def _description(section: type[BaseModel]) -> str:
    # A class without a docstring of its own answers with that of pydantic's BaseModel.
    own = section.__dict__.get("__doc__")
    return f"{prose(own)}\n\n" if own else ""


def _table(model: type[BaseModel], rows: Sequence[tuple[str, str, str]]) -> str:
    cells = (
        (code(key), type_of(_annotation(model, key)), code(default), prose(meaning))
        for key, default, meaning in rows
    )
    return table(("key", "type", "default", "meaning"), cells)


def _annotation(model: type[BaseModel], key: str) -> Any:
    section, dot, rest = key.partition(".")
    annotation = model.model_fields[section].annotation
    return _annotation(annotation, rest) if dot else annotation


def type_of(annotation: Any) -> str:
    """Returns the type of a key in words: what may stand behind its equals sign."""
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_of(inside[0])
    if origin is Literal:
        return "text" if all(isinstance(one, str) for one in inside) else "choice"
    if origin in (Union, types.UnionType):
        names = [type_of(one) for one in inside if one is not type(None)]
        return " or ".join(dict.fromkeys(names))
    if origin is tuple or origin is list:
        return f"list of {_plural(type_of(inside[0]))}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "source"
    return TYPES[annotation]


def _plural(name: str) -> str:
    return {"text": "texts"}.get(name, f"{name}s")
