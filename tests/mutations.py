"""Valid trees of JSON or TOML values come in, damaged ones go out, for tests that read files.

What is damaged keeps the structure of the valid one, so that it gets past the first check.
"""

import copy
import json
import math
from typing import Any

import tomli_w
from hypothesis import strategies as st

DEEP = "@deep@"
"""Stands for a list that is nested more deeply than a parser can follow."""
_NESTED = "[" * 3000 + "]" * 3000

VALUES = st.sampled_from(
    [
        None,
        [],
        {},
        [[]],
        "",
        "text",
        "12",
        "../../up",
        "line\nfeed",
        "\x00",
        "x" * 5000,
        True,
        0,
        -1,
        1.5,
        10**30,
        -(10**30),
        10**400,
        1e300,
        math.nan,
        math.inf,
        -math.inf,
        DEEP,
    ]
)
_REMOVE = object()


def places(tree: Any, prefix: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value in the tree."""
    steps = tree.items() if isinstance(tree, dict) else enumerate(tree)
    found = []
    for step, value in steps:
        found.append((*prefix, step))
        if isinstance(value, dict | list):
            found += places(value, (*prefix, step))
    return found


@st.composite
def damaged_trees(draw: Any, valid: dict[str, Any]) -> dict[str, Any]:
    """One to three values replaced, removed or added."""
    tree = copy.deepcopy(valid)
    for _ in range(draw(st.integers(1, 3))):
        found = places(tree)
        if not found:
            break
        *parents, last = draw(st.sampled_from(found))
        holder = tree
        for step in parents:
            holder = holder[step]
        value = draw(st.one_of(VALUES, st.just(_REMOVE)))
        if value is not _REMOVE:
            holder[last] = value
        elif isinstance(holder, dict):
            del holder[last]
            if draw(st.booleans()):
                holder[f"{last}2"] = 1
        else:
            holder.pop(last)
    return tree


@st.composite
def damaged_json(draw: Any, valid: dict[str, Any]) -> bytes:
    text = json.dumps(draw(damaged_trees(valid))).replace(f'"{DEEP}"', _NESTED)
    return draw(damaged_bytes(text.encode()))


@st.composite
def damaged_toml(draw: Any, valid: dict[str, Any]) -> bytes:
    text = tomli_w.dumps(_without_null(draw(damaged_trees(valid)))).replace(f'"{DEEP}"', _NESTED)
    return draw(damaged_bytes(text.encode()))


@st.composite
def damaged_bytes(draw: Any, content: bytes) -> bytes:
    """Mostly as they are; sometimes cut off, or with garbage in the middle."""
    match draw(st.sampled_from(["none", "none", "none", "none", "cut", "garbage"])):
        case "cut":
            return content[: draw(st.integers(0, len(content)))]
        case "garbage":
            at = draw(st.integers(0, len(content)))
            return content[:at] + draw(st.binary(min_size=1, max_size=20)) + content[at:]
    return content


def _without_null(tree: Any) -> Any:
    """TOML has none."""
    if isinstance(tree, dict):
        return {key: _without_null(value) for key, value in tree.items() if value is not None}
    if isinstance(tree, list):
        return [_without_null(value) for value in tree if value is not None]
    return tree
