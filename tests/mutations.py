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
# Hypothesis raises the limit of the interpreter by some thousands.
_NESTED = "[" * 10_000 + "]" * 10_000

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


@st.composite
def damaged_trees(draw: Any, valid: dict[str, Any]) -> dict[str, Any]:
    """One value replaced or removed, sometimes two; what is removed may be there by another name.

    The way down to it takes every branch with the same chance, however many values it holds.
    """
    tree = copy.deepcopy(valid)
    for _ in range(draw(st.sampled_from([1, 1, 1, 2]))):
        holder: Any = tree
        while holder:
            steps = sorted(holder) if isinstance(holder, dict) else range(len(holder))
            last = draw(st.sampled_from(steps))
            is_end = not isinstance(holder[last], dict | list) or not holder[last]
            if is_end or draw(st.integers(0, 4)) == 0:
                break
            holder = holder[last]
        if not holder:
            break
        if draw(st.integers(0, 5)):
            holder[last] = copy.deepcopy(draw(VALUES))  # a second one may go into it
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
    match draw(st.sampled_from([*["none"] * 8, "cut", "garbage"])):
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
