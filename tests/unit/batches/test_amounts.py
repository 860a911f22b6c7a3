import numpy as np

from dragoman.batches.amounts import Amounts, amounts_of


def test_padding_counts_as_positions_and_not_as_tokens():
    micro_batches = [np.array([[3, 5], [2, 4]], dtype=np.int32), np.array([[7, 1]], dtype=np.int32)]
    assert amounts_of(micro_batches) == Amounts(
        sequences=3,
        source_tokens=3 + 2 + 7,
        target_tokens=5 + 4 + 1,
        positions=2 * 3 + 2 * 5 + 7 + 1,
        source_squared=9 + 4 + 49,
        target_squared=25 + 16 + 1,
        source_times_target=15 + 8 + 7,
    )


def test_a_rank_without_work_has_done_nothing():
    assert set(amounts_of([])) == {0}


def test_squares_of_long_sentences_do_not_overflow():
    lengths = np.full((1000, 2), 60_000, dtype=np.uint16)
    assert amounts_of([lengths]).source_squared == 1000 * 60_000**2
