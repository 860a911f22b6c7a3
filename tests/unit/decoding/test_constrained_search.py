import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.batches.collate import collate_sources
from dragoman.config import ModelSettings
from dragoman.decoding.constrained_search import Limits, Row, allocate, constrained_search
from dragoman.decoding.constraints import WORD_START
from dragoman.decoding.search import beam_search
from dragoman.model.transformer import Transformer

START, END = 2, 3
SOURCES = [[5, 6, 7, END], [8, END], [9, 10, 11, 12, 13, END]]
STARTS = [number % 2 == 1 for number in range(20)]  # the end among them


def tiny_model(vocabulary=20, seed=1):
    torch.manual_seed(seed)
    shape = ModelSettings(preset="transformer-tiny", width=16, heads=2, filter=32)
    model = Transformer(shape, vocabulary).eval()
    torch.nn.init.normal_(model.embedding.weight, std=0.7)
    return model


MODEL = tiny_model()


def log_probability(model, source, pieces):
    with torch.no_grad():
        target = torch.tensor([[START, *pieces[:-1]]])
        hidden = model(torch.tensor([source]), None, target)
        log_probs = (hidden @ model.output_weight.T).log_softmax(-1)[0]
    return sum(log_probs[n, piece].item() for n, piece in enumerate(pieces))


def contains(ids, pattern):
    ids = [*ids, END]  # the end of the text ends a word
    return any(
        all(
            STARTS[piece] if wanted == WORD_START else piece == wanted
            for wanted, piece in zip(pattern, ids[place:], strict=False)
        )
        for place in range(len(ids) - len(pattern) + 1)
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("patterns", [[(4, 4)], [(5, WORD_START)], [(1,), (5,)], [(0, 1), (1, 4)]])
def test_a_wide_beam_finds_the_best_of_all_sequences_that_contain_the_terms(seed, patterns):
    model = tiny_model(vocabulary=6, seed=seed)
    source = [4, 5, END]
    pieces = [piece for piece in range(6) if piece != END]
    ended = [[*ids, END] for size in range(4) for ids in itertools.product(pieces, repeat=size)]
    cut_off = [list(ids) for ids in itertools.product(pieces, repeat=4)]

    def value(ids):
        return log_probability(model, source, ids) / len(ids) ** 0.6

    def is_good(ids):
        without_end = [piece for piece in ids if piece != END]
        return all(contains(without_end, pattern) for pattern in patterns)

    best = sorted(filter(is_good, [*ended, *cut_off]), key=value, reverse=True)[:2]
    limits = Limits(START, END, 4, beam=700, length_penalty=0.6, hypotheses=2)
    batch = collate_sources([source], 0)
    (found,) = constrained_search([model], batch, limits, [patterns], STARTS[:6])
    assert [each.score for each in found] == pytest.approx(list(map(value, best)), rel=1e-3)
    assert found[0].ids == [piece for piece in best[0] if piece != END]


PIECES = st.integers(0, 19).filter(lambda piece: piece != END)
PATTERN = st.tuples(st.lists(PIECES, min_size=1, max_size=4), st.booleans()).map(
    lambda drawn: (*drawn[0], WORD_START) if drawn[1] else tuple(drawn[0])
)


@settings(max_examples=40)
@given(
    st.lists(st.lists(PATTERN, max_size=3), min_size=3, max_size=3),
    st.integers(1, 5),
    st.lists(st.lists(PIECES, max_size=3), min_size=3, max_size=3),
)
def test_every_hypothesis_has_its_terms_and_its_prefix_and_no_neighbor_matters(
    patterns, beam, prefixes
):
    limits = Limits(START, END, 24, beam, 0.6, hypotheses=beam)
    batch = collate_sources(SOURCES, 0)
    together = constrained_search([MODEL], batch, limits, patterns, STARTS, prefixes)
    for number, found in enumerate(together):
        assert 1 <= len(found) <= beam
        assert len({tuple(each.ids) for each in found}) == len(found)
        assert [each.score for each in found] == sorted(each.score for each in found)[::-1]
        for each in found:
            assert all(contains(each.ids, pattern) for pattern in patterns[number])
            assert each.ids[: len(prefixes[number])] == prefixes[number]
            assert END not in each.ids
            assert len(each.ids) <= 24
    (alone,) = constrained_search(
        [MODEL], collate_sources(SOURCES[1:2], 0), limits, patterns[1:2], STARTS, prefixes[1:2]
    )
    assert [each.ids for each in alone] == [each.ids for each in together[1]]


def test_a_term_that_the_best_translation_has_anyway_changes_nothing():
    batch = collate_sources(SOURCES, 0)
    limits = Limits(START, END, 12, beam=4, length_penalty=0.6)
    for number, (plain,) in enumerate(beam_search([MODEL], batch, START, END, 12, 4, 0.6)):
        patterns = [[] for _ in SOURCES]
        patterns[number] = [tuple(plain.ids[:1])]
        found = constrained_search([MODEL], batch, limits, patterns, STARTS)[number][0]
        assert found.score >= plain.score - 1e-4


def test_terms_for_which_there_is_no_room_are_met_as_far_as_there_is():
    limits = Limits(START, END, 3, beam=2, length_penalty=0.6)
    batch = collate_sources(SOURCES[:1], 0)
    (found,) = constrained_search([MODEL], batch, limits, [[(4, 5, 6, 7, 8)]], STARTS)
    assert [each.ids for each in found] == [[4, 5, 6]]


def test_the_beam_is_shared_out_among_amounts_met_with_the_largest_first():
    patterns = [(4, 5)]
    rows = [Row(-number, (number,), (number % 3,)) for number in range(9)]
    kept = allocate(patterns, rows, 5)
    assert [row.ids[0] for row in kept] == [2, 1, 0, 5, 4]
    assert len(allocate(patterns, rows, 100)) == 9
    assert allocate(patterns, [], 3) == []
