import itertools

import pytest
import torch

from dragoman.batches.collate import collate_sources
from dragoman.config import ModelSettings
from dragoman.decoding.search import beam_search, greedy_search
from dragoman.model.transformer import Transformer

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
