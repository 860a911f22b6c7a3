import itertools

import pytest
import torch

from dragoman.batches.collate import collate_sources
from dragoman.config import DecodingSettings, ModelSettings
from dragoman.decoding import translator
from dragoman.decoding.search import beam_search, greedy_search
from dragoman.decoding.splitting import Piece, join, split
from dragoman.decoding.translator import translate
from dragoman.model.transformer import Transformer
from dragoman.preparation import prepare

START, END = 2, 3
SOURCES = [[5, 6, 7, END], [8, END], [9, 10, 11, 12, 13, END]]


def tiny_model(vocabulary=20, seed=1):
    torch.manual_seed(seed)
    settings = ModelSettings(preset="transformer-tiny", width=16, heads=2, filter=32)
    model = Transformer(settings, vocabulary).eval()
    # Sharper than at the start of training, so that the best next piece is no coin toss.
    torch.nn.init.normal_(model.embedding.weight, std=0.7)
    return model


def log_probability(model, source, ids):
    with torch.no_grad():
        target = torch.tensor([[START, *ids]])
        hidden = model(torch.tensor([source]), None, target)
        log_probs = (hidden @ model.output_weight.T).log_softmax(-1)[0]
    return sum(log_probs[n, piece].item() for n, piece in enumerate([*ids, END]))


@pytest.mark.parametrize("seed", range(5))
def test_a_beam_of_one_is_greedy_search(seed):
    model = tiny_model(seed=seed)
    batch = collate_sources(SOURCES, 0)
    lengths = [6, 12, 9]
    greedy = greedy_search(model, batch, START, END, lengths)
    assert beam_search(model, batch, START, END, lengths, beam=1, length_penalty=0.6) == greedy


@pytest.mark.parametrize("seed", range(4))
def test_a_wide_beam_finds_the_best_of_all_sequences(seed):
    model = tiny_model(vocabulary=6, seed=seed)
    source = [4, 5, END]
    pieces = [piece for piece in range(6) if piece != END]
    sequences = [list(ids) for size in range(3) for ids in itertools.product(pieces, repeat=size)]

    def value(ids):
        return log_probability(model, source, ids) / ((5 + len(ids) + 1) / 6) ** 0.6

    best = max(sequences, key=value)
    (found,) = beam_search(
        model, collate_sources([source], 0), START, END, [3], beam=40, length_penalty=0.6
    )
    assert found == best


def test_neighbors_in_a_batch_do_not_change_a_translation():
    model = tiny_model()
    together = beam_search(model, collate_sources(SOURCES, 0), START, END, [10] * 3, 4, 0.6)
    for source, expected in zip(SOURCES, together, strict=True):
        (alone,) = beam_search(model, collate_sources([source], 0), START, END, [10], 4, 0.6)
        assert alone == expected


@pytest.mark.parametrize("beam", [1, 3])
def test_no_translation_is_longer_than_allowed_or_holds_the_end(beam):
    model = tiny_model()
    batch = collate_sources(SOURCES, 0)
    for ids, most in zip(
        beam_search(model, batch, START, END, [1, 4, 7], beam, 0.6), [1, 4, 7], strict=True
    ):
        assert len(ids) <= most
        assert END not in ids


def test_text_comes_back_in_its_order_and_empty_lines_stay_empty(digits_config):
    tokenizer = prepare(digits_config).tokenizer()
    torch.manual_seed(1)
    model = Transformer(digits_config.model, tokenizer.size)
    sentences = ["one two three four five", "", "  ", "nine", "one two"]
    settings = DecodingSettings(beam=2, batch_tokens=16)
    device = torch.device("cpu")
    heard = []
    together = translate(model, tokenizer, sentences, settings, device, heard.append)
    alone = [translate(model, tokenizer, [text], settings, device)[0] for text in sentences]
    assert together == alone
    assert together[1] == together[2] == ""
    assert sum(heard) == 3
    assert model.training


@pytest.fixture
def digits_translator(digits_config):
    tokenizer = prepare(digits_config).tokenizer()
    torch.manual_seed(1)
    model = Transformer(digits_config.model, tokenizer.size)

    def run(sentences, **options):
        settings = DecodingSettings(beam=2, batch_tokens=200)
        return translate(model, tokenizer, sentences, settings, torch.device("cpu"), **options)

    return tokenizer, run


def test_a_line_as_long_as_allowed_is_translated_whole(digits_translator):
    tokenizer, run = digits_translator
    line = "one two three four five. Six seven eight nine"
    tokens = len(tokenizer.encode([line])[0])
    assert run([line], longest=tokens) == run([line], longest=10_000)
    pieces = [Piece("one two three four five.", True), Piece("Six seven eight nine")]
    assert run([line], longest=tokens - 1) == [join(pieces, run([p.text for p in pieces]))]


@pytest.mark.parametrize("line", ["one two three. Four five! " * 100, "seven" * 200, "x" * 1000])
def test_a_monstrous_line_is_translated_in_pieces_that_fit_and_its_neighbors_as_ever(
    digits_translator, line, monkeypatch
):
    tokenizer, run = digits_translator
    searched = []

    def search(model, batch, *rest):
        searched.append(batch.source_BS.shape[1])
        return beam_search(model, batch, *rest)

    monkeypatch.setattr(translator, "beam_search", search)
    neighbors = ["one two", "", "nine"]
    expected = run(neighbors)
    heard = []
    found = run([*neighbors[:2], line, neighbors[2]], longest=40, done=heard.append)
    assert len(found) == 4
    assert [*found[:2], found[3]] == expected
    pieces = split(line, 39, lambda texts: [len(ids) - 1 for ids in tokenizer.encode(texts)])
    assert sum(heard) == len(pieces) + 2
    assert found[2] == join(pieces, run([piece.text for piece in pieces]))
    assert max(searched) <= 40
