import functools
import io
import threading

import pytest
import sentencepiece

from dragoman.batches.merges import DRAWS, SPACE, Merges, check_merges
from dragoman.config import TokenizerSettings
from dragoman.corpus.phrasebook import sentence_pairs
from dragoman.errors import UserError
from dragoman.tokenizer import learn_tokenizer

WHY = "training.subword_dropout = 0.1"


@functools.cache
def learned(kind="bpe"):
    texts = [text for pair in sentence_pairs("train", 500, seed=1) for text in pair]
    return learn_tokenizer(texts, TokenizerSettings(kind=kind, vocabulary=300)), texts


@pytest.fixture
def words():
    return sorted({SPACE + word for text in learned()[1][:200] for word in text.split()})


@pytest.fixture
def merges():
    return Merges(learned()[0].model, WHY)


def outcomes(merges, word, share):
    """Every segmentation of a word with its probability, from the ranges of draws that give it."""
    found, draw = {}, 0
    while draw < DRAWS:
        result = merges.segment(word, share, draw)
        assert result.low == draw < result.high
        assert merges.segment(word, share, result.high - 1) == result
        found[result.pieces] = found.get(result.pieces, 0) + (result.high - result.low) / DRAWS
        draw = result.high
    return found


def reference(scores, word, share):
    """The same by hand: of the pairs that may merge, the best one is next, and dropped or not."""
    found = {}

    def go_on(symbols, dropped, probability):
        starts = [sum(map(len, symbols[:n])) for n in range(len(symbols))]
        pairs = [
            (-scores[symbols[n] + symbols[n + 1]], starts[n], n)
            for n in range(len(symbols) - 1)
            if symbols[n] + symbols[n + 1] in scores
            and (starts[n], symbols[n], symbols[n + 1]) not in dropped
        ]
        if not pairs:
            found[tuple(symbols)] = found.get(tuple(symbols), 0) + probability
            return
        _, start, n = min(pairs)
        merged = [*symbols[:n], symbols[n] + symbols[n + 1], *symbols[n + 2 :]]
        go_on(merged, dropped, probability * (1 - share))
        go_on(symbols, dropped | {(start, symbols[n], symbols[n + 1])}, probability * share)

    go_on(list(word), frozenset(), 1.0)
    return found


def test_without_a_drop_the_pieces_are_those_of_sentencepiece(merges, words):
    tokenizer, _ = learned()
    for word in words:
        (usual,) = tokenizer.encode([word.removeprefix(SPACE)])
        assert merges.segment(word, 0.1, draw=0).pieces == tuple(usual[:-1])
        assert merges.segment(word, 0.0, draw=DRAWS - 1).pieces == tuple(usual[:-1])


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_drops_are_as_likely_as_in_a_plain_implementation(merges, words, share):
    processor = sentencepiece.SentencePieceProcessor(model_proto=learned()[0].model)
    scores = {
        processor.id_to_piece(number): processor.get_score(number)
        for number in range(4, processor.get_piece_size())
    }
    short = [word for word in words if len(word) <= 7]
    assert len(short) > 20
    for word in short:
        expected = reference(scores, word, share)
        found = outcomes(merges, word, share)
        by_text = {tuple(merges.pieces[n] for n in ids): p for ids, p in found.items()}
        assert by_text == pytest.approx(expected, abs=1e-6)


def test_drops_are_as_likely_as_in_sentencepiece(merges):
    """Its generator belongs to the thread, so a fresh thread begins with the seed."""
    word, share, times = f"{SPACE}window", 0.2, 20_000
    expected = outcomes(merges, word, share)
    counts: dict[tuple[int, ...], int] = {}

    def sample():
        processor = sentencepiece.SentencePieceProcessor(model_proto=learned()[0].model)
        for _ in range(times):
            drawn = processor.encode(
                word.removeprefix(SPACE), enable_sampling=True, alpha=share, nbest_size=-1
            )
            counts[tuple(drawn)] = counts.get(tuple(drawn), 0) + 1

    sentencepiece.set_random_generator_seed(1)
    thread = threading.Thread(target=sample)
    thread.start()
    thread.join()
    assert sum(counts.values()) == times
    assert set(counts) <= set(expected)
    for pieces, probability in expected.items():
        error = (probability * (1 - probability) / times) ** 0.5
        assert abs(counts.get(pieces, 0) / times - probability) <= 5 * error


def test_a_very_long_word_still_ends(merges):
    word = SPACE + "e" * 5000 + "window" * 500
    result = merges.segment(word, 0.5, DRAWS // 3)
    assert "".join(merges.pieces[number] for number in result.pieces) == word


def test_a_character_that_is_no_piece_leaves_a_word_alone(merges):
    assert merges.segment(f"{SPACE}wind\N{SNOWMAN}w", 0.1, 0) is None


def test_special_and_user_defined_pieces_are_not_made_of_text():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(learned()[1]),
        model_writer=model,
        vocab_size=500,
        model_type="bpe",
        user_defined_symbols=["the"],
        byte_fallback=True,
        minloglevel=2,
    )
    merges = Merges(model.getvalue(), WHY)
    by_id = zip(merges.pieces, merges.is_normal, strict=True)
    special = {piece for piece, is_normal in by_id if not is_normal}
    assert {"<unk>", "<s>", "</s>", "the", "<0x00>", "<0xFF>"} <= special
    assert len(special) == 3 + 1 + 256


def test_other_models_are_refused_with_the_keys(tmp_path):
    path = tmp_path / "unigram.model"
    path.write_bytes(learned("unigram")[0].model)
    with pytest.raises(UserError) as refused:
        check_merges(path, 0.1)
    for fact in (WHY, "unigram", "tokenizer.kind"):
        assert fact in str(refused.value)
    path.write_bytes(learned()[0].model)
    check_merges(path, 0.1)
