"""Documents in, documents out: records are taken apart, their sentences translated in batches, and
written in order. Memory is bounded by a batch, whatever the size of the document.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from dragoman.documents.layout import Layout, put_together
from dragoman.documents.record import Candidate, Record, TranslatedSentence, TranslatedText
from dragoman.errors import UserError

RECORDS_AT_ONCE = 2000
CHARACTERS_AT_ONCE = 1_000_000

TakeApart = Callable[[str], Layout]
"""Returns the layout of a text, such as `layout.take_apart` with a language."""
Translate = Callable[[Sequence[str], Sequence[str]], Sequence[Sequence[Candidate]]]
"""Returns candidates of sentences, each of which has to begin with its prefix; "" for any."""


class Written(NamedTuple):
    text: str
    """Lines with their line feeds."""
    records: int
    sentences: int


def translate_texts(
    texts: Sequence[str],
    take_apart: TakeApart,
    translate: Translate,
    prefixes: Sequence[str] = (),
) -> list[TranslatedText]:
    """Translates texts, one for one, with the sentences of all of them at once.

    With `prefixes`, one for each text, the translation of its first sentence begins with it.
    """
    layouts = [take_apart(text) for text in texts]
    sentences = [sentence for layout in layouts for sentence in layout.sentences]
    of_sentences = [
        prefix if number == 0 else ""
        for layout, prefix in zip(layouts, prefixes or [""] * len(texts), strict=True)
        for number in range(len(layout.sentences))
    ]
    found = iter(translate(sentences, of_sentences) if sentences else [])
    translated = []
    for layout in layouts:
        candidates = list(islice(found, len(layout.sentences)))
        text = put_together(layout, [best[0].text for best in candidates])
        pairs = zip(layout.sentences, candidates, strict=True)
        translated.append(TranslatedText(text, tuple(TranslatedSentence(*pair) for pair in pairs)))
    return translated


def translate_records(
    records: Iterable[Record],
    take_apart: TakeApart,
    translate: Translate,
    prefixes: Iterator[str] | None = None,
    at_once: int = RECORDS_AT_ONCE,
) -> Iterator[Written]:
    """Yields the lines to write, batch by batch.

    `prefixes` has one for each record with a text. `at_once` bounds the records of a batch.
    """
    for batch in batches(records, at_once):
        texts = [record.text for record in batch if record.text is not None]
        first = list(islice(prefixes, len(texts))) if prefixes is not None else []
        if prefixes is not None and len(first) < len(texts):
            raise UserError("there are fewer prefixes than lines to translate; check both files")
        translated = iter(translate_texts(texts, take_apart, translate, first))
        lines, sentences = [], 0
        for record in batch:
            text = next(translated) if record.text is not None else TranslatedText("", ())
            sentences += len(text.sentences)
            lines.append(record.write(text) + "\n")
        yield Written("".join(lines), len(batch), sentences)
    if prefixes is not None and next(prefixes, None) is not None:
        raise UserError("there are more prefixes than lines to translate; check both files")


def batches(records: Iterable[Record], at_once: int = RECORDS_AT_ONCE) -> Iterator[list[Record]]:
    """Yields batches of records that fit into memory, however long their texts are."""
    batch: list[Record] = []
    characters = 0
    for record in records:
        batch.append(record)
        characters += len(record.text or "") + record.kept_characters
        if len(batch) == at_once or characters > CHARACTERS_AT_ONCE:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
