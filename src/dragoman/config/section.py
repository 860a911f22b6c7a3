"""A section of a recipe: a strict and frozen model, whose keys are documented where they stand.

`keys_of` gives those texts, with the defaults and bounds that are declared beside them.
"""

from collections.abc import Iterator
from itertools import chain
from typing import get_args

import tomli_w
from pydantic import AfterValidator, BaseModel, ConfigDict, PlainValidator
from pydantic.fields import FieldInfo

from dragoman.config.bounds import Range


class Section(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        use_attribute_docstrings=True,
        protected_namespaces=(),
    )


def keys_of(section: type[BaseModel], prefix: str) -> Iterator[tuple[str, str, str]]:
    for name, field in section.model_fields.items():
        nested = field.annotation
        if isinstance(nested, type) and issubclass(nested, Section):
            yield from keys_of(nested, f"{prefix}{name}.")
        else:
            default = field.get_default()
            shown = "" if field.is_required() or default is None else toml_value(default)
            yield f"{prefix}{name}", shown, _allowed(field) + (field.description or "")


def _allowed(field: FieldInfo) -> str:
    """Returns the choices of a key or the bounds of its number as a sentence; empty if free."""
    if choices := [value for value in get_args(field.annotation) if isinstance(value, str)]:
        return f"One of {', '.join(choices)}. "
    optional = (getattr(part, "__metadata__", ()) for part in get_args(field.annotation))
    for checked in (*field.metadata, *chain.from_iterable(optional)):
        if isinstance(checked, AfterValidator | PlainValidator) and isinstance(checked.func, Range):
            return f"A number {checked.func}. "
    return ""


def toml_value(value: object) -> str:
    """Returns a value as it stands in a recipe behind the equals sign."""
    return tomli_w.dumps({"x": value}).removeprefix("x = ").strip()
