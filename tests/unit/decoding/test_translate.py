import pytest
import torch

from dragoman.config import DecodingSettings
from dragoman.decoding.engine import most_pieces
from dragoman.decoding.splitting import Piece, join, split
from dragoman.decoding.torch_engine import TorchEngine
from dragoman.decoding.translate import translate
from dragoman.model.transformer import Transformer
from dragoman.preparation import prepare


def test_text_comes_back_in_its_order_and_empty_lines_stay_empty(digits_config):
    tokenizer = prepare(digits_config).tokenizer()
    torch.manual_seed(1)
    model = Transformer(digits_config.model, tokenizer.size)
    sentences = ["one two three four five", "", "  ", "nine", "one two"]
    settings = DecodingSettings(beam=2, batch_tokens=16)
    engine = TorchEngine(model, tokenizer, torch.device("cpu"))
    heard = []
    together = translate(engine, tokenizer, sentences, settings, heard.append)
    alone = [translate(engine, tokenizer, [text], settings)[0] for text in sentences]
    assert together == alone
    assert together[1] == together[2] == ""
    assert sum(heard) == 3
    assert model.training


class Watched:
    """An engine that keeps the lengths of the sentences of each batch."""

    def __init__(self, engine):
        self.engine, self.searched, self.replicas = engine, [], 1

    def search(self, batches, settings, *options):
        for batch in batches:
            self.searched.append([len(ids) for ids in batch])
            yield from self.engine.search([batch], settings, *options)


@pytest.fixture
def digits_translator(digits_config):
    tokenizer = prepare(digits_config).tokenizer()
    torch.manual_seed(1)
    model = Transformer(digits_config.model, tokenizer.size)
    engine = Watched(TorchEngine(model, tokenizer, torch.device("cpu")))

    def run(sentences, **options):
        settings = DecodingSettings(beam=2, batch_tokens=200)
        return translate(engine, tokenizer, sentences, settings, **options)

    return tokenizer, run, engine.searched


def test_a_line_as_long_as_allowed_is_translated_whole(digits_translator):
    tokenizer, run, _ = digits_translator
    line = "one two three four five. Six seven eight nine"
    tokens = len(tokenizer.encode([line])[0])
    assert run([line], longest=tokens) == run([line], longest=10_000)
    pieces = [Piece("one two three four five.", True), Piece("Six seven eight nine")]
    assert run([line], longest=tokens - 1) == [join(pieces, run([p.text for p in pieces]))]


@pytest.mark.parametrize("line", ["one two three. Four five! " * 100, "seven" * 200, "x" * 1000])
def test_a_monstrous_line_is_translated_in_pieces_that_fit_and_its_neighbors_as_ever(
    digits_translator, line
):
    tokenizer, run, searched = digits_translator
    neighbors = ["one two", "", "nine"]
    expected = run(neighbors)
    heard = []
    found = run([*neighbors[:2], line, neighbors[2]], longest=40, done=heard.append)
    assert len(found) == 4
    assert [*found[:2], found[3]] == expected
    pieces = split(line, 39, lambda texts: [len(ids) - 1 for ids in tokenizer.encode(texts)])
    assert sum(heard) == len(pieces) + 2
    assert found[2] == join(pieces, run([piece.text for piece in pieces]))
    assert max(map(max, searched)) <= 40


def test_a_batch_holds_sentences_that_may_become_equally_long(digits_translator):
    _, run, searched = digits_translator
    run([" ".join(["one"] * count) for count in range(1, 40)])
    settings = DecodingSettings()
    assert sum(map(len, searched)) == 39
    for lengths in searched:
        assert len({most_pieces(length, settings) for length in lengths}) == 1
    assert max(map(len, searched)) > 1
