"""What pydantic finds wrong with a file comes in; sentences that name key and value go out."""

import difflib
import re
from collections.abc import Iterator, Sequence
from datetime import date, time
from itertools import islice

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dragoman.config.sources import SOURCE_KINDS, source_keys
from dragoman.config.texts import hide_login

LONGEST_SHOWN = 100
"""Most characters of a wrong value that an error message repeats."""
# More than these would no longer be a readable sentence.
MANY_KEYS = 12
MOST_PROBLEMS = 5


def problems_of(error: ValidationError, known: Sequence[str] = ()) -> str:
    """Returns what is wrong with a file, as one sentence; `known` as in `sentences_of`."""
    shown = "; ".join(sentence for _, sentence in islice(sentences_of(error, known), MOST_PROBLEMS))
    more = len(_problems(error)) - MOST_PROBLEMS
    return f"{shown}; and {more:,} more problem(s)" if more > 0 else shown


def sentences_of(
    error: ValidationError, known: Sequence[str]
) -> Iterator[tuple[tuple[int | str, ...], str]]:
    """Yields where each problem is, as pydantic has it, and a sentence about it; `known` are the
    dotted keys that are allowed."""
    for problem in _problems(error):
        yield problem["loc"], _sentence(problem, known)


def _sentence(problem: ErrorDetails, known: Sequence[str]) -> str:
    key = ".".join(in_one_line(part) for part in _place(problem))
    match problem["type"]:
        case "extra_forbidden":
            return f"unknown key {key}{_nearest(key, known and _known_beside(problem, known))}"
        case "missing":
            return f"{key} is missing; add it"
        case "union_tag_not_found":
            return f"{key} needs a kind: one of {', '.join(SOURCE_KINDS)}"
        case "union_tag_invalid":
            return _unknown_kind(key, problem["ctx"]["tag"])
        case "too_short":
            return f"{key} is too short; at least {problem['ctx']['min_length']} must be there"
        case "value_error":
            where = f"{key}: " if key else ""
            return f"{where}{problem['ctx']['error']}"
        case kind if kind in _WANTED_TYPES:
            return f"{key} = {_shown(problem['input'])} should be {_WANTED_TYPES[kind]}"
        case _:
            subject, _, wish = problem["msg"].rpartition(" should ")
            wish = wish.replace("be a valid ", "be ") if subject else f"be {wish}"
            return f"{key} = {_shown(problem['input'])} should {wish}"


_WANTED_TYPES = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text in quotes",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
}
"""What pydantic calls an error -> what the value should have been."""


def _unknown_kind(key: str, kind: str) -> str:
    kinds = list(SOURCE_KINDS)
    close = difflib.get_close_matches(kind, kinds, n=1)
    meant = f"; did you mean {close[0]}?" if close else ""
    of_all = f"{', '.join(kinds[:-1])} or {kinds[-1]}"
    return f"{key}.kind = {_shown(kind)} should be one of {of_all}{meant}"


def _place(problem: ErrorDetails) -> tuple[int | str, ...]:
    """Returns the key of a problem as a recipe has it: pydantic adds the kind of a source."""
    place = problem["loc"]
    return (*place[:3], *place[4:]) if _is_in_source(place) else place


def _known_beside(problem: ErrorDetails, known: Sequence[str]) -> Sequence[str]:
    """Returns the keys that may stand in the place of a key: a source has those of its kind."""
    place = problem["loc"]
    if not _is_in_source(place):
        return known
    (keys,) = (keys for kind, _, keys in source_keys() if kind == place[3])
    return [f"data.{place[1]}.{name}" for name in ("kind", *(name for name, _, _ in keys))]


def _is_in_source(place: Sequence[int | str]) -> bool:
    return len(place) > 3 and place[0] == "data" and isinstance(place[2], int)


def _problems(error: ValidationError) -> list[ErrorDetails]:
    """Returns the errors without those that follow from others.

    pydantic does not count invalid items, and so also reports their list as too short. An unknown
    preset has no sizes, which are then missing.
    """
    problems = error.errors()
    places = [problem["loc"] for problem in problems]
    preset = ("model", "preset")
    if preset in places:
        problems = [
            p
            for p in problems
            if p["loc"] == preset or not (p["type"] == "missing" and p["loc"][0] == "model")
        ]
    outer = {loc[:depth] for loc in (p["loc"] for p in problems) for depth in range(len(loc))}
    return [p for p in problems if not (p["type"] == "too_short" and p["loc"] in outer)]


def in_one_line(part: int | str) -> str:
    text = str(part)
    return text if text.isprintable() and len(text) <= LONGEST_SHOWN else _shown(part)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date | time):
        return value.isoformat()
    try:
        text = hide_login(repr(value))
    except (ValueError, RecursionError):  # an integer of thousands of digits, a deep list
        return f"a huge {type(value).__name__}"
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def _nearest(key: str, keys: Sequence[str]) -> str:
    known = [*keys, *sorted({name.partition(".")[0] for name in keys if "." in name})]
    section, _, last = re.sub(r"\.\d+", "", key).rpartition(".")
    siblings = [name for name in known if name.rpartition(".")[0] == section]
    for candidates in (siblings, known):
        by_last = {name.rpartition(".")[2]: name for name in candidates}
        if close := difflib.get_close_matches(last, by_last, n=1, cutoff=0.7):
            return f"; did you mean {by_last[close[0]]}?"
    if len(siblings) > MANY_KEYS:
        return "; `dragoman config --keys` lists all keys"
    return f"; known keys are {', '.join(siblings)}" if siblings else ""
