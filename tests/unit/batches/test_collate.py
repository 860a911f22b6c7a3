import torch

from dragoman.batches.collate import collate
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
