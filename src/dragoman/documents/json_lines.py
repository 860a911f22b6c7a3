"""JSON lines: the text under a key of each object; the objects are written with its translation."""

import json
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from dragoman.corpus.text import is_unicode
from dragoman.documents.candidates import json_line, sentence_objects
from dragoman.documents.record import Record, TranslatedText
from dragoman.errors import UserError

DETAILS_KEY = "sentences"


def read_json_lines(
    lines: Iterable[str],
    name: str,
    key: str,
    output_key: str,
    *,
    detailed: bool = False,
    aligned: bool = False,
) -> Iterator[Record]:
    """Yields a record for each line of the file with this name; blank lines stay blank.

    Dots in keys address nested objects: translation.en. With `detailed`, the candidates of all
    sentences are added under "sentences".
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            yield Record(None, partial(_unchanged, line=line.strip()))
            continue
        try:
            content = json.loads(line)
            text = _text_at(content, key)
            _check_is_free(content, output_key)
            if detailed:
                _check_is_free(content, DETAILS_KEY)
            json_line(content)  # may be nested more deeply than can be written
        except _WrongObjectError as error:
            raise UserError(f"{name}, line {number}: {error}") from None
        except (ValueError, RecursionError) as error:
            raise UserError(
                f"{name}, line {number}: not JSON ({error}); each line needs one whole object"
            ) from None
        write = partial(
            _with_translation,
            content=content,
            output_key=output_key,
            detailed=detailed,
            aligned=aligned,
        )
        yield Record(text, write, len(line))


class _WrongObjectError(Exception):
    pass


def _text_at(content: object, key: str) -> str:
    value = content
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            raise _WrongObjectError(
                f"there is no key {key}; correct the line or name another with --key"
            )
        value = value[part]
    if not isinstance(value, str) or not is_unicode(value):
        raise _WrongObjectError(
            f"the key {key} has no text but {json.dumps(value)[:40]}; "
            "correct the line or name another with --key"
        )
    return value


def _check_is_free(content: Any, output_key: str) -> None:
    *parents, last = output_key.split(".")
    for parent in parents:
        content = content.get(parent, {})
        if not isinstance(content, dict):
            raise _WrongObjectError(
                f"the key {parent} has no object to add {output_key} to; "
                "name another with --output-key"
            )
    if last in content:
        raise _WrongObjectError(
            f"there is a key {output_key} already; name another with --output-key"
        )


def _unchanged(_: TranslatedText, line: str) -> str:
    return line


def _with_translation(
    translated: TranslatedText,
    content: dict[str, Any],
    output_key: str,
    detailed: bool,
    aligned: bool,
) -> str:
    *parents, last = output_key.split(".")
    place = content
    for parent in parents:
        place = place.setdefault(parent, {})
    place[last] = translated.text
    if detailed:
        content[DETAILS_KEY] = sentence_objects(translated, aligned)
    return json_line(content)
