"""Pairs from JSON lines, one object per line: a file comes in, pairs go out."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from dragoman.corpus.pair import Pair
from dragoman.corpus.text import one_line, read_lines
from dragoman.errors import UserError


def read_jsonl(path: Path, source_key: str, target_key: str) -> Iterator[Pair]:
    """Yields the texts under two keys of every object; dots address nested ones: translation.en."""
    return jsonl_pairs(read_lines(path), path, source_key, target_key)


def jsonl_pairs(
    lines: Iterable[str], path: Path, source_key: str, target_key: str, first_line: int = 1
) -> Iterator[Pair]:
    """Yields the pairs of some lines of a file, whose first one has this number there."""
    for number, line in enumerate(lines, start=first_line):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(
                f"{path}, line {number}: not JSON ({error}); each line needs one whole object"
            ) from error
        try:
            pair = Pair(_text_at(record, source_key), _text_at(record, target_key))
        except _NoTextError as error:
            raise UserError(
                f"{path}, line {number}: {error}; correct the line or name another key"
            ) from None
        yield pair


class _NoTextError(Exception):
    pass


def _text_at(record: object, key: str) -> str:
    value = record
    for name in key.split("."):
        if not isinstance(value, dict) or name not in value:
            raise _NoTextError(f"there is no key {key}")
        value = value[name]
    if not isinstance(value, str):
        raise _NoTextError(f"the key {key} has {_shown(value)}, which is not a text")
    try:
        value.encode()
    except UnicodeEncodeError:  # JSON can escape half a surrogate pair, UTF-8 cannot hold it
        raise _NoTextError(f"the key {key} has half a surrogate pair, which is no text") from None
    return one_line(value)


def _shown(value: object) -> str:
    if isinstance(value, dict | list):  # may be nested more deeply than can be written again
        return "an object" if isinstance(value, dict) else "a list"
    return json.dumps(value)[:40]
