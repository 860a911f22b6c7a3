import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dragoman.batches.blocks import block_order, blocks_of, random_keys

SIZES = st.lists(st.integers(0, 50), min_size=1, max_size=30)


@given(sizes=SIZES, block_pairs=st.integers(0, 200))
def test_every_pair_is_in_one_block_with_the_rest_of_its_shard(sizes, block_pairs):
    blocks = blocks_of(sizes, block_pairs)
    numbers = [number for block in blocks for number in block.numbers().tolist()] if blocks else []
    assert sorted(numbers) == list(range(sum(sizes)))
    shards = [shard for block in blocks for shard in block.shards]
    assert sorted(shards) == [shard for shard, pairs in enumerate(sizes) if pairs]
    assert all(block.pairs == len(block.numbers()) for block in blocks)


def test_without_a_size_all_shards_are_one_block():
    (block,) = blocks_of([3, 0, 4], 0)
    assert block.shards == (0, 2)
    assert block.numbers().tolist() == [0, 1, 2, 3, 4, 5, 6]


def test_a_block_has_shards_from_all_over_the_data():
    blocks = blocks_of([100] * 6, 200)
    assert [block.shards for block in blocks] == [(0, 3), (1, 4), (2, 5)]
    assert blocks[1].ranges == (range(100, 200), range(400, 500))


def test_a_block_has_a_shard_at_least():
    assert [block.shards for block in blocks_of([100] * 3, 1)] == [(0,), (1,), (2,)]
    assert [block.shards for block in blocks_of([100] * 3, 10**9)] == [(0, 1, 2)]


def test_epochs_and_seeds_have_orders_of_their_own():
    orders = [block_order(seed, epoch, 12) for seed in (1, 2) for epoch in range(3)]
    assert all(sorted(order) == list(range(12)) for order in orders)
    assert len({tuple(order) for order in orders}) == len(orders)


def test_a_known_order_stays_what_it_was():
    """A changed one would silently give resumed runs other batches."""
    assert block_order(seed=1, epoch=0, count=6) == [0, 4, 3, 5, 1, 2]


def test_blocks_and_streams_draw_independently():
    drawn = [random_keys(1, 3, block, stream, 5).tolist() for block in (0, 1) for stream in (0, 1)]
    assert len({tuple(each) for each in drawn}) == 4
    usual = np.random.Philox(key=np.array([1, 3 << 1], dtype=np.uint64)).random_raw(5)
    assert drawn[0] == usual.tolist()  # as it was before there were blocks
