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


def log_probability(model, source, pieces):
    with torch.no_grad():
        target = torch.tensor([[START, *pieces[:-1]]])
        hidden = model(torch.tensor([source]), None, target)
        log_probs = (hidden @ model.output_weight.T).log_softmax(-1)[0]
    return sum(log_probs[n, piece].item() for n, piece in enumerate(pieces))


@pytest.mark.parametrize("seed", range(5))
def test_a_beam_of_one_is_greedy_search(seed):
    model = tiny_model(seed=seed)
    batch = collate_sources(SOURCES, 0)
    greedy = greedy_search([model], batch, START, END, 9, length_penalty=0.6)
    beam = [found for (found,) in beam_search([model], batch, START, END, 9, 1, 0.6)]
    assert [found.ids for found in beam] == [found.ids for found in greedy]
    assert [found.score for found in beam] == pytest.approx(
        [found.score for found in greedy], rel=1e-3
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_wide_beam_finds_the_best_of_all_sequences(seed):
    model = tiny_model(vocabulary=6, seed=seed)
    source = [4, 5, END]
    pieces = [piece for piece in range(6) if piece != END]
    ended = [[*ids, END] for size in range(3) for ids in itertools.product(pieces, repeat=size)]
    cut_off = [list(ids) for ids in itertools.product(pieces, repeat=3)]

    def value(ids):
        return log_probability(model, source, ids) / len(ids) ** 0.6

    first, second = sorted([*ended, *cut_off], key=value, reverse=True)[:2]
    (found,) = beam_search(
        *([model], collate_sources([source], 0), START, END, 3),
        beam=100,
        length_penalty=0.6,
        hypotheses=2,
    )
    assert [each.score for each in found] == pytest.approx([value(first), value(second)], rel=1e-3)
    assert found[0].ids == [piece for piece in first if piece != END]


def test_neighbors_in_a_batch_do_not_change_a_translation():
    model = tiny_model()
    together = beam_search([model], collate_sources(SOURCES, 0), START, END, 10, 4, 0.6)
    for source, expected in zip(SOURCES, together, strict=True):
        (alone,) = beam_search([model], collate_sources([source], 0), START, END, 10, 4, 0.6)
        assert [found.ids for found in alone] == [found.ids for found in expected]


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("most", [1, 4, 7])
def test_no_translation_is_longer_than_allowed_or_holds_the_end(beam, most):
    batch = collate_sources(SOURCES, 0)
    for (found,) in beam_search([tiny_model()], batch, START, END, most, beam, 0.6):
        assert len(found.ids) <= most
        assert END not in found.ids


def test_hypotheses_come_best_first_and_without_a_penalty_longer_ones_are_not_waited_for():
    batch = collate_sources(SOURCES, 0)
    for penalty in (0.0, 1.0):
        for found in beam_search([tiny_model()], batch, START, END, 12, 4, penalty, hypotheses=3):
            assert len(found) == 3
            assert [each.score for each in found] == sorted(
                (each.score for each in found), reverse=True
            )
            assert len({tuple(each.ids) for each in found}) == 3


PREFIXES = [[9, 4], [], [7, 7, 5]]


@pytest.mark.parametrize("seed", range(3))
def test_hypotheses_begin_with_their_prefix_and_the_first_free_piece_is_the_models(seed):
    model = tiny_model(seed=seed)
    batch = collate_sources(SOURCES, 0)
    greedy = greedy_search([model], batch, START, END, 9, 0.6, PREFIXES)
    beam = beam_search([model], batch, START, END, 9, 4, 0.6, 4, PREFIXES)
    for source, prefix, found, wide in zip(SOURCES, PREFIXES, greedy, beam, strict=True):
        assert found.ids[: len(prefix)] == prefix
        assert all(each.ids[: len(prefix)] == prefix for each in wide)
        alternatives = [[*prefix, piece] for piece in range(20)]
        best = max(alternatives, key=lambda ids: log_probability(model, source, ids))
        assert [*found.ids, END][: len(best)] == best
    (alone,) = greedy_search(
        [model], collate_sources(SOURCES[2:], 0), START, END, 9, 0.6, PREFIXES[2:]
    )
    assert alone.ids == greedy[2].ids


def test_a_wide_beam_finds_the_best_continuation_and_scores_what_is_free():
    model = tiny_model(vocabulary=6, seed=2)
    source, prefix = [4, 5, END], [5, 1]
    pieces = [piece for piece in range(6) if piece != END]
    # As in CTranslate2, an end right behind the prefix counts only if it is the best piece there.
    ended = [[piece, END] for piece in pieces]
    cut_off = [list(ids) for ids in itertools.product(pieces, repeat=2)]
    given = log_probability(model, source, prefix)

    def value(ids):
        return (log_probability(model, source, [*prefix, *ids]) - given) / (2 + len(ids)) ** 0.6

    best = max([*ended, *cut_off], key=value)
    batch = collate_sources([source], 0)
    ((found, *_),) = beam_search([model], batch, START, END, 4, 30, 0.6, 2, [prefix])
    at_once = value([END])
    if found.ids != prefix:
        assert found.ids == [*prefix, *(piece for piece in best if piece != END)]
        assert found.score == pytest.approx(value(best), rel=1e-3)
    else:
        assert found.score == pytest.approx(at_once, rel=1e-3)
        assert at_once >= value(best)
