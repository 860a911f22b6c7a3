from functools import partial

import pytest

from dragoman.documents.layout import take_apart
from dragoman.documents.record import BestText, Record
from dragoman.documents.text_lines import read_text_lines
from dragoman.documents.translation import (
    CHARACTERS_AT_ONCE,
    batches,
    translate_records,
    translate_texts,
)
from dragoman.errors import UserError

split = partial(take_apart, language="en", lines="split")


class Shouting:
    """A translator into capitals that remembers what it was asked."""

    def __init__(self):
        self.calls = []

    def __call__(self, sentences, prefixes):
        self.calls.append((list(sentences), list(prefixes)))
        pairs = zip(sentences, prefixes, strict=True)
        return [[BestText(prefix + sentence.upper()), BestText("")] for sentence, prefix in pairs]


def test_sentences_of_all_texts_are_translated_at_once():
    translate = Shouting()
    first, empty, last = translate_texts(["One. Two.", "", " three"], split, translate)
    assert (first.text, empty.text, last.text) == ("ONE. TWO.", "", " THREE")
    assert translate.calls == [(["One.", "Two.", "three"], ["", "", ""])]
    assert [sentence.source for sentence in first.sentences] == ["One.", "Two."]
    assert len(first.sentences[0].candidates) == 2


def test_nothing_to_translate_asks_nobody():
    translate = Shouting()
    assert [text.text for text in translate_texts(["", "---"], split, translate)] == ["", "---"]
    assert translate.calls == []


def test_records_are_written_in_order_and_counted():
    lines = ["One. Two.", "", "- three", "four"]
    written = list(translate_records(read_text_lines(lines), split, Shouting(), at_once=3))
    assert [part.text for part in written] == ["ONE. TWO.\n\n- THREE\n", "FOUR\n"]
    assert [(part.records, part.sentences) for part in written] == [(3, 3), (1, 1)]


def test_a_prefix_belongs_to_the_first_sentence_of_a_line():
    prefixes = iter(["a", "b", "c"])
    records = [
        Record(None, lambda translated: "head"),
        *read_text_lines(["One. Two.", "", "three"]),
    ]
    (written,) = translate_records(records, split, Shouting(), prefixes)
    assert written.text == "head\naONE. TWO.\n\ncTHREE\n"


@pytest.mark.parametrize(("prefixes", "fact"), [(["a"], "fewer"), (["a", "b", "c"], "more")])
def test_another_number_of_prefixes_is_refused(prefixes, fact):
    with pytest.raises(UserError, match=fact):
        list(translate_records(read_text_lines(["x", "y"]), split, Shouting(), iter(prefixes)))


def test_memory_is_bounded_by_records_and_by_characters():
    def texts(lines, at_once):
        return [[r.text for r in batch] for batch in batches(read_text_lines(lines), at_once)]

    assert texts("abcde", 2) == [["a", "b"], ["c", "d"], ["e"]]
    long = "x" * CHARACTERS_AT_ONCE
    assert texts([long, long, "y"], 100) == [[long, long], ["y"]]
    assert texts([], 2) == []
    large = Record("x", str, CHARACTERS_AT_ONCE - 1)
    assert [len(batch) for batch in batches([large, large, large], 100)] == [2, 1]


def test_lines_are_not_read_far_ahead():
    read = []

    def endless():
        while True:
            read.append(1)
            yield "one"

    written = translate_records(read_text_lines(endless()), split, Shouting(), at_once=10)
    next(written)
    next(written)
    assert len(read) == 20
