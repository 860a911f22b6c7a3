"""Lines of one kind of event come in, columns go out, by the fastest way that will read them.

1. Lines that differ in nothing but their numbers, as the steps of a run do: with all numbers taken
   out they are equal, and with all names taken out they are a table that Arrow's reader of tables
   takes in, in a sixth of the time that it needs for the same lines as JSON.
2. Other lines of numbers: Arrow's reader of JSON.
3. What that refuses, because a line was torn by a crash or has a field of another type, and events
   with texts: one by one.

Each way either gives what the third would have given, or refuses.
"""

import dataclasses
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from dragoman.telemetry.columns import (
    OBJECT,
    Array,
    Columns,
    Field,
    fields_of,
    is_numeric,
    joined,
    merge_order,
    taken,
)

FEW_LINES = 200
"""So few alike are not worth a table of their own."""

# Exponents are written in upper case, so that no letter of a number is a letter of a name.
_OF_NUMBERS = b"0123456789.+-E"
_BUT_NUMBERS_AND_COLONS = bytes(set(range(256)) - set(_OF_NUMBERS + b":,\n"))
_COMMA_TO_SPACE = bytes.maketrans(b",", b" ")
_DIGIT_IN_A_NAME = re.compile(rb'[a-z/_]\d[^":,]*":')

Path: TypeAlias = tuple[str, ...]
"""The names that lead to a value in a line."""


def columns_of(kind: type[Any], text: bytes) -> Columns:
    """`text`: lines that all say they are of this kind. What is no such event is left out."""
    if not text.endswith(b"\n"):
        text += b"\n"
    columns = None
    if not is_numeric(kind):
        columns = _one_by_one(kind, text.split(b"\n")[:-1])
    elif _DIGIT_IN_A_NAME.search(text, 0, text.index(b"\n")):  # of a network interface, say
        lines = text.split(b"\n")[:-1]
        columns = _by_arrow(kind, lines) or _one_by_one(kind, lines)
    return columns or _of_like_lines(kind, text) or _by_sorts_of_lines(kind, text)


def _by_sorts_of_lines(kind: type[Any], text: bytes) -> Columns:
    """Some steps have other parts, or a norm that is not a number: each sort has its own table."""
    # As new runs have it. What this does to a name cannot pass: names with a minus are refused.
    upper = text.replace(b"e-", b"E-")
    upper_lines = _array_of(upper.split(b"\n")[:-1])
    alike: dict[bytes, list[int]] = defaultdict(list)
    for number, skeleton in enumerate(upper.translate(None, _OF_NUMBERS).split(b"\n")[:-1]):
        alike[skeleton].append(number)
    parts: list[Columns] = []
    rest: list[int] = []
    for numbers in alike.values():
        part = None
        if len(numbers) > FEW_LINES:
            part = _of_like_lines(kind, b"\n".join(upper_lines[numbers]) + b"\n")
        if part is None:
            rest += numbers
        else:
            part.line = np.array(numbers)[part.line]
            parts.append(part)
    if rest:
        rest.sort()
        own = _array_of(text.split(b"\n")[:-1])[rest].tolist()
        part = _by_arrow(kind, own) or _one_by_one(kind, own)
        part.line = np.array(rest)[part.line]
        parts.append(part)
    whole = joined(kind, parts)
    return taken(whole, np.argsort(whole.line))


def _of_like_lines(kind: type[Any], text: bytes) -> Columns | None:
    """None: they are not all alike, or one of them is not what the first seems to say."""
    import pyarrow as pa  # noqa: PLC0415 - takes a third of a second
    import pyarrow.csv  # noqa: PLC0415

    try:
        example = json.loads(text[: text.index(b"\n")])
    except ValueError:
        return None
    cells = list(_cells(example)) if isinstance(example, dict) else []
    skeletons = text.translate(None, _OF_NUMBERS)
    first_skeleton = skeletons[: skeletons.index(b"\n") + 1]
    rows, over = divmod(len(skeletons), len(first_skeleton))
    if over or skeletons != first_skeleton * rows:
        return None

    # A column for each name: what stands between its colon and the next name. So a number inside a
    # name stands beside another, or where there should be none, and the table is refused.
    ints = {(field.name,) for field in fields_of(kind) if field.type == "i8"}
    types = {"before": pa.null()}
    for place, (path, value) in enumerate(cells):
        a_number = pa.int64() if path in ints else pa.float64()
        types[str(place)] = a_number if _is_number(value) else pa.null()
    try:
        table = pa.csv.read_csv(
            pa.BufferReader(text.translate(_COMMA_TO_SPACE, _BUT_NUMBERS_AND_COLONS)),
            read_options=pa.csv.ReadOptions(
                use_threads=False, block_size=len(text) + 1, column_names=list(types)
            ),
            parse_options=pa.csv.ParseOptions(delimiter=":", quote_char=False),
            convert_options=pa.csv.ConvertOptions(column_types=types, null_values=["", " "]),
        )
    except pa.ArrowInvalid:
        return None
    if len(table) != rows:
        return None

    numbers: dict[Path, Array] = {}
    words: dict[Path, Any] = {}
    for place, (path, value) in enumerate(cells):
        if not _is_number(value):
            words[path] = value
        elif table[str(place)].null_count:
            return None
        else:
            numbers[path] = table[str(place)].to_numpy()
    return _arranged(kind, numbers, words, rows)


def _cells(value: dict[str, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Everything that has a name, in the order of the line."""
    for name, inner in value.items():
        yield (*path, name), inner
        if isinstance(inner, dict):
            yield from _cells(inner, (*path, name))


def _arranged(
    kind: type[Any], numbers: dict[Path, Array], words: dict[Path, Any], rows: int
) -> Columns | None:
    """`words`: what is the same in all lines, such as true. None: it is not of the right type."""
    columns = Columns(rows, np.arange(rows), {}, {})
    for field in fields_of(kind):
        word = words.get((field.name,))
        if field.is_group:
            if (field.name,) in numbers or not isinstance(word, dict | None):
                return None
            columns.groups[field.name] = {
                path[1]: values
                for path, values in numbers.items()
                if len(path) == 2 and path[0] == field.name
            }
        elif (field.name,) in numbers:
            columns.plain[field.name] = numbers[field.name,]
            if columns.plain[field.name].dtype != field.type:
                return None
        elif word is None and field.is_required:
            return dataclasses.replace(_one_by_one(kind, []), lines=rows)
        elif word is None or _fits(word, field.type):
            value = field.default if word is None else word
            columns.plain[field.name] = np.full(rows, value, dtype=field.type)
        else:
            return None
    return columns


def _by_arrow(kind: type[Any], lines: Sequence[bytes]) -> Columns | None:
    """None: Arrow will not read it."""
    import pyarrow as pa  # noqa: PLC0415

    try:
        return _read_by_arrow(kind, lines)
    except (pa.ArrowInvalid, UnicodeDecodeError):  # also of a name, which it decodes when asked
        return None


def _read_by_arrow(kind: type[Any], lines: Sequence[bytes]) -> Columns | None:
    """None: it is not what it should be."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.json  # noqa: PLC0415

    types = {"f8": pa.float64(), "i8": pa.int64(), "?": pa.bool_()}
    known = [(field.name, types[field.type]) for field in fields_of(kind) if not field.is_group]
    text = b"\n".join(lines)
    table = pa.json.read_json(
        pa.BufferReader(text),
        read_options=pa.json.ReadOptions(use_threads=False, block_size=len(text) + 1),
        parse_options=pa.json.ParseOptions(explicit_schema=pa.schema(known)),
    )
    if len(table) != len(lines):
        return None

    columns = Columns(len(lines), np.arange(len(lines)), {}, {})
    whole = np.ones(len(lines), dtype=bool)
    for field in fields_of(kind):
        if not field.is_group:
            values = table[field.name].combine_chunks()
            if values.null_count:
                if field.is_required:
                    whole &= _is_valid(values)
                nothing = False if field.type == "?" else 0
                values = values.fill_null(nothing if field.is_required else field.default)
            columns.plain[field.name] = values.to_numpy(zero_copy_only=False)
        elif field.name not in table.column_names or pa.types.is_null(table[field.name].type):
            columns.groups[field.name] = {}
        elif not pa.types.is_struct(table[field.name].type):
            return None
        else:
            struct = table[field.name].combine_chunks()
            columns.groups[field.name] = _group_by_arrow(field.name, struct, lines)
    return _without_empty_names(columns if whole.all() else taken(columns, whole))


def _group_by_arrow(group: str, struct: Any, lines: Sequence[bytes]) -> dict[str, Array]:
    import pyarrow as pa  # noqa: PLC0415

    numbers: dict[str, Array] = {}
    order: list[str] = []
    for name, values in zip((field.name for field in struct.type), struct.flatten(), strict=True):
        if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
            continue
        numbers[name] = values.cast("float64").to_numpy(zero_copy_only=False)
        if name not in order:
            # Arrow has names in the order of the lines that they first occur in.
            first = int(_is_valid(values).argmax())
            merge_order(order, json.loads(lines[first])[group])
    return {name: numbers[name] for name in order if name in numbers}


def _is_valid(values: Any) -> Array:
    valid: Array = values.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _one_by_one(kind: type[Any], lines: Sequence[bytes]) -> Columns:
    fields = fields_of(kind)
    found = [(number, _content(line, fields)) for number, line in enumerate(lines)]
    contents = [content for _, content in found if content is not None]
    numbers = [number for number, content in found if content is not None]
    columns = Columns(len(lines), np.array(numbers, dtype=np.int64), {}, {})
    for field in fields:
        values = [content[field.name] for content in contents]
        if field.is_group:
            columns.groups[field.name] = _group(values)
        elif field.type == OBJECT:
            columns.plain[field.name] = _array_of(values)
        else:
            columns.plain[field.name] = np.array(values, dtype=field.type)
    return _without_empty_names(columns)


def _without_empty_names(columns: Columns) -> Columns:
    """Of a group: names that no row has a number for."""
    for group, numbers in columns.groups.items():
        columns.groups[group] = {n: v for n, v in numbers.items() if not np.isnan(v).all()}
    return columns


def _array_of(values: Sequence[object]) -> Array:
    """Of the objects themselves, whatever NumPy would make of them."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _content(line: bytes, fields: Sequence[Field]) -> dict[str, Any] | None:
    """With a value of the right type for every field; None: the line is torn or something else."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    content: dict[str, Any] = {}
    for field in fields:
        value = found.get(field.name)
        if value is None:
            if field.is_required:
                return None
            value = {} if field.is_group else field.default
        elif not _fits(value, "group" if field.is_group else field.type):
            return None
        content[field.name] = value
    return content


def _fits(value: object, type_name: str) -> bool:
    match type_name:
        case "?":
            return isinstance(value, bool)
        case "i8":
            return type(value) is int and -(1 << 63) <= value < 1 << 63
        case "f8":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case "group":
            return isinstance(value, dict)
    return True


def _group(values: Sequence[dict[str, Any]]) -> dict[str, Array]:
    order: list[str] = []
    for names in dict.fromkeys(tuple(value) for value in values):
        merge_order(order, names)
    return {name: np.array([_number(value.get(name)) for value in values]) for name in order}


def _number(value: Any) -> float:
    return float(value) if _fits(value, "f8") else math.nan


def _is_number(value: object) -> bool:
    """As it stands in a line: not true, not NaN."""
    return _fits(value, "f8") and math.isfinite(value)  # type: ignore[arg-type]
