"""Texts are taken apart, their sentences translated in batches, and put together again."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Literal, NamedTuple, TypeVar

from dragoman.decoding.translation import k_best
from dragoman.documents.layout import Layout, put_together
from dragoman.serve.batching import Batcher, Candidates
from dragoman.serve.markup import Part, put_together_html, take_apart_html
from dragoman.serve.models import Model

Format = Literal["text", "html"]
Result = TypeVar("Result")

LONG_CHARACTERS = 4000
"""Above these, a thread pays: texts are taken apart at some 2000 characters a millisecond."""


class Translated(NamedTuple):
    text: str
    alternatives: list[str]
    """Other translations, the best first; fewer than were asked for where there are no more."""


async def translate_texts(
    batcher: Batcher,
    model: Model,
    texts: Sequence[str],
    form: Format = "text",
    alternatives: int = 0,
) -> list[Translated]:
    """Translates texts, one for one, with the sentences of all of them at once."""
    parts_of, sentences_of = await aside(texts, _taken_apart, texts, model, form)
    sentences = list(chain.from_iterable(sentences_of))
    found = await batcher.translate(model, sentences, 1 + alternatives)
    return await aside(texts, _all_translated, parts_of, sentences_of, found, form, alternatives)


async def aside(texts: Sequence[str], work: Callable[..., Result], *arguments: Any) -> Result:
    """Returns what `work` returns; with many or long texts, while the event loop does others'."""
    if len(texts) + sum(map(len, texts)) > LONG_CHARACTERS:
        return await asyncio.to_thread(work, *arguments)
    return work(*arguments)


def _taken_apart(
    texts: Sequence[str], model: Model, form: Format
) -> tuple[list[list[Part]], list[list[str]]]:
    """Returns the parts of each text, and its sentences."""
    parts_of = [_parts_of(text, model, form) for text in texts]
    return parts_of, [
        [sentence for layout in _layouts(parts) for sentence in layout.sentences]
        for parts in parts_of
    ]


def _all_translated(
    parts_of: Sequence[Sequence[Part]],
    sentences_of: Sequence[Sequence[str]],
    found: Sequence[Candidates],
    form: Format,
    alternatives: int,
) -> list[Translated]:
    remaining = iter(found)
    return [
        _translated(parts, list(islice(remaining, len(sentences))), form, alternatives)
        for parts, sentences in zip(parts_of, sentences_of, strict=True)
    ]


def _parts_of(text: str, model: Model, form: Format) -> list[Part]:
    return take_apart_html(text, model.take_apart) if form == "html" else [model.take_apart(text)]


def _layouts(parts: Sequence[Part]) -> Iterator[Layout]:
    return (part for part in parts if isinstance(part, Layout))


def _translated(
    parts: Sequence[Part], candidates: Sequence[Candidates], form: Format, alternatives: int
) -> Translated:
    choices = [(0,) * len(candidates)]
    if alternatives:
        scores = [[each.score for each in of_sentence] for of_sentence in candidates]
        choices = k_best(scores, 1 + alternatives)
    texts: dict[str, None] = {}  # a set in order
    for choice in choices:
        chosen = [of[rank].text for of, rank in zip(candidates, choice, strict=True)]
        texts.setdefault(_put_together(parts, chosen, form))
    best, *others = texts
    return Translated(best, others)


def _put_together(parts: Sequence[Part], translations: Sequence[str], form: Format) -> str:
    if form == "html":
        return put_together_html(parts, iter(translations))
    (layout,) = _layouts(parts)
    return put_together(layout, translations)
