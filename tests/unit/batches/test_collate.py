import pytest
import torch

from dragoman.batches.collate import collate, cut
from dragoman.shards.files import PairIds

START, PADDING = 2, 0


def test_targets_are_shifted_and_padding_is_left_out_of_what_is_predicted():
    batch = collate([PairIds([5, 6, 3], [7, 3]), PairIds([8, 3], [9, 10, 3])], START, PADDING)
    assert batch.source_BS.tolist() == [[5, 6, 3], [8, 3, 0]]
    assert batch.target_in_BT.tolist() == [[2, 7, 0], [2, 9, 10]]
    assert batch.target_out_N.tolist() == [7, 3, 9, 10, 3]
    assert batch.token_positions_N.tolist() == [0, 1, 3, 4, 5]


def test_the_mask_is_true_on_tokens_and_absent_without_padding():
    padded = collate([PairIds([5, 6, 3], [7, 3]), PairIds([8, 3], [9, 3])], START, PADDING)
    assert padded.source_mask.tolist() == [[[[True, True, True]]], [[[True, True, False]]]]
    even = collate([PairIds([5, 3], [7, 3]), PairIds([8, 3], [9, 3])], START, PADDING)
    assert even.source_mask is None


def test_moving_to_the_cpu_copies_nothing():
    batch = collate([PairIds([5, 3], [7, 3])], START, PADDING)
    assert batch.to(torch.device("cpu")) is batch


@pytest.mark.parametrize(("pieces", "sizes"), [(1, [3]), (2, [1, 2]), (3, [1, 1, 1]), (8, [1] * 3)])
def test_pieces_hold_the_same_pairs(pieces, sizes):
    pairs = [PairIds([5, 6, 3], [7, 3]), PairIds([8, 3], [9, 10, 3]), PairIds([9, 3], [7, 3])]
    cuts = cut(collate(pairs, START, PADDING), pieces)
    assert [len(piece.source_BS) for piece in cuts] == sizes
    begin = 0
    for piece in cuts:
        alone = collate(pairs[begin : begin + len(piece.source_BS)], START, PADDING)
        begin += len(piece.source_BS)
        assert piece.target_out_N.tolist() == alone.target_out_N.tolist()
        for row, tokens in zip(piece.target_in_BT, alone.target_in_BT, strict=True):
            assert row[: len(tokens)].tolist() == tokens.tolist()
        assert piece.target_in_BT.flatten()[piece.token_positions_N].tolist() == (
            alone.target_in_BT.flatten()[alone.token_positions_N].tolist()
        )
        real = [len(source) for source, _ in pairs[begin - len(piece.source_BS) : begin]]
        assert piece.source_mask.sum(dim=-1).flatten().tolist() == real


def test_pieces_of_sentences_without_padding_need_no_mask():
    even = collate([PairIds([5, 3], [7, 3]), PairIds([8, 3], [9, 3])], START, PADDING)
    assert [piece.source_mask for piece in cut(even, 2)] == [None, None]
