import io

import numpy as np
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import tokenizer as tokenizer_module
from dragoman.config import TokenizerSettings
from dragoman.errors import DragomanError, UserError
from dragoman.tokenizer import Tokenizer, WordCache, learn_tokenizer

TEXT = ["the cat sees the old house", "die Katze sieht das alte Haus", "fünf schöne Äpfel"] * 5


def test_text_survives_the_way_to_ids_and_back():
    tokenizer = learn_tokenizer(TEXT, TokenizerSettings(vocabulary=60))
    encoded = tokenizer.encode(TEXT)
    assert all(ids[-1] == tokenizer.end for ids in encoded)
    assert tokenizer.decode(encoded) == TEXT
    assert tokenizer.size == 60


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_the_same_text_gives_the_same_bytes(kind):
    settings = TokenizerSettings(vocabulary=32, kind=kind)
    assert learn_tokenizer(TEXT, settings).model == learn_tokenizer(TEXT, settings).model


def test_a_vocabulary_the_text_cannot_fill_is_refused_with_the_largest():
    with pytest.raises(UserError, match=r"tokenizer.vocabulary = 5000 .* at most \d+") as caught:
        learn_tokenizer(TEXT, TokenizerSettings(vocabulary=5000))
    assert "\n" not in str(caught.value)


def test_a_vocabulary_too_small_for_the_letters_is_refused():
    with pytest.raises(UserError, match=r".* at least 25"):
        learn_tokenizer(TEXT, TokenizerSettings(vocabulary=8))


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("texts", [[], ["a" * 5000]])
def test_text_without_a_line_to_learn_from_is_refused(kind, texts):
    with pytest.raises(UserError, match="training text"):
        learn_tokenizer(texts, TokenizerSettings(vocabulary=50, kind=kind))


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_the_smallest_settings_are_those_that_sentencepiece_takes(kind):
    least = TokenizerSettings(vocabulary=6, kind=kind, character_coverage=0.98)
    assert learn_tokenizer(["a"], least).size == 6


def test_a_model_learned_elsewhere_without_padding_serves_too(tmp_path):
    learned = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT), model_writer=learned, vocab_size=30, bos_id=-1, minloglevel=2
    )
    path = tmp_path / "other.model"
    path.write_bytes(learned.getvalue())
    tokenizer = Tokenizer.load(path)
    assert tokenizer.start == tokenizer.padding == tokenizer.end >= 0
    assert tokenizer.decode(tokenizer.encode(TEXT)) == TEXT


def test_a_file_that_is_no_model_is_named(tmp_path):
    (tmp_path / "x.model").write_bytes(b"no model at all")
    with pytest.raises(DragomanError, match=r"x\.model"):
        Tokenizer.load(tmp_path / "x.model")
    with pytest.raises(UserError, match=r"none\.model"):
        Tokenizer.load(tmp_path / "none.model")


LEARNED = {
    kind: learn_tokenizer(TEXT, TokenizerSettings(vocabulary=size, kind=kind))
    for kind, size in (("bpe", 60), ("unigram", 32))
}
LETTERS = st.text("abdehinostuäßK.,1 ", max_size=30)
ANYTHING = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@settings(deadline=None, max_examples=300)
@given(kind=st.sampled_from(["bpe", "unigram"]), texts=st.lists(LETTERS | ANYTHING, max_size=5))
def test_the_word_cache_gives_the_ids_of_whole_lines(kind, texts):
    tokenizer = LEARNED[kind]
    assert tokenizer.splits_at_spaces()
    words = WordCache(tokenizer)
    for _ in range(2):
        assert rows(words.encode(texts)) == tokenizer.encode(texts)


def rows(encoded):
    """As a tokenizer gives them: a list for each text."""
    parts = np.split(encoded.ids, np.cumsum(encoded.lengths))
    assert not len(parts[-1])
    return [part.tolist() for part in parts[:-1]]


def test_no_text_is_no_ids():
    ids, lengths = WordCache(LEARNED["bpe"]).encode([])
    assert (len(ids), len(lengths)) == (0, 0)


def test_the_word_cache_is_bounded(monkeypatch):
    monkeypatch.setattr(tokenizer_module, "WORDS_REMEMBERED", 10)
    words = WordCache(LEARNED["bpe"])
    for number in range(20):
        texts = [f"{number} a{number} katze", "haus"]
        assert rows(words.encode(texts)) == LEARNED["bpe"].encode(texts)
        assert len(words._words) <= 10


class Looked(dict):
    """May be asked for words, and not gone through: there are up to a million."""

    def __iter__(self):
        raise AssertionError

    keys = items = values = __iter__


def test_a_new_word_costs_the_same_however_many_are_remembered():
    words = WordCache(LEARNED["bpe"])
    words._words = Looked()
    for number in range(3):
        texts = [f"katze {number}", "haus"]
        assert rows(words.encode(texts)) == LEARNED["bpe"].encode(texts)
    assert len(words._words) == 5


def test_a_model_whose_pieces_reach_over_spaces_is_asked_for_whole_lines():
    learned = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT * 20),
        model_writer=learned,
        vocab_size=80,
        model_type="bpe",
        split_by_whitespace=False,
        minloglevel=2,
    )
    tokenizer = Tokenizer(learned.getvalue())
    assert not tokenizer.splits_at_spaces()
    assert rows(WordCache(tokenizer).encode(TEXT)) == tokenizer.encode(TEXT)


def learned_tokenizer(byte_fallback: bool) -> Tokenizer:
    learned = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT),
        model_writer=learned,
        vocab_size=320 if byte_fallback else 60,
        byte_fallback=byte_fallback,
        model_type="bpe",
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return Tokenizer(learned.getvalue())


@pytest.mark.parametrize("byte_fallback", [False, True])
@pytest.mark.parametrize(
    "text", ["the cat", "  fünf  👍 x你好!", "ﬁ\u200bcat Ⅻ\x01.", "", " ", "👍"]
)
def test_spans_are_the_pieces_of_a_text_and_cover_it_in_order(byte_fallback, text):
    tokenizer = learned_tokenizer(byte_fallback)
    spans = tokenizer.spans(text)
    assert [*(span.piece for span in spans), tokenizer.end] == tokenizer.encode([text])[0]
    place = 0
    for span in spans:
        assert not text[place : span.begin].strip()
        assert span.begin <= span.end
        place = max(place, span.end)
    assert not text[place:].strip()


@pytest.mark.parametrize("byte_fallback", [False, True])
def test_surfaces_together_are_the_decoded_text(byte_fallback):
    tokenizer = learned_tokenizer(byte_fallback)
    for text in ("the cat sees", "fünf 👍 alte", ""):
        ids = tokenizer.encode([text])[0][:-1]
        surfaces = tokenizer.surfaces(ids)
        assert len(surfaces) == len(ids)
        assert "".join(surfaces) == tokenizer.decode([ids])[0]
    assert tokenizer.surfaces(tokenizer.encode(["the cat"])[0][:-1])[0].startswith("t")
