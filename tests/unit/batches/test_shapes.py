import numpy as np
import pytest

from dragoman.batches.plan import BatchPlan
from dragoman.batches.shapes import (
    BatchShape,
    lengths_of,
    shapes_of,
    share_of,
    synthetic_lengths,
)


@pytest.fixture
def plan():
    lengths = np.random.default_rng(1).integers(1, 40, (500, 2)).astype(np.int32)
    return BatchPlan(lengths, tokens_per_update=1500, micro_batch_tokens=400, seed=1)


def test_made_up_pairs_have_the_tokens_and_the_padding_of_the_real_ones(plan):
    for step, shapes in enumerate(shapes_of(plan, 3), 1):
        for shape, batch in zip(shapes, plan.batch(step).micro_batches, strict=True):
            real, made_up = plan.lengths[batch.pairs], lengths_of(shape)
            assert made_up.shape == real.shape
            assert made_up.max(axis=0).tolist() == real.max(axis=0).tolist()
            assert made_up.sum(axis=0).tolist() == real.sum(axis=0).tolist()
            assert made_up.min() >= 1
            assert shape.cost == batch.cost


def test_there_are_no_more_steps_than_in_an_epoch(plan):
    assert len(shapes_of(plan, 10**6)) == plan.steps_per_epoch


def test_a_single_pair_is_as_long_as_it_is():
    assert lengths_of(BatchShape(1, 7, 9, 7, 9)).tolist() == [[7, 9]]


def test_all_micro_batches_of_a_step_are_somebodys(plan):
    shapes = shapes_of(plan, 1)[0]
    shares = [share_of(shapes, rank, 2) for rank in range(2)]
    assert sorted([*shares[0], *shares[1]]) == list(range(len(shapes)))


@pytest.mark.parametrize("longest", [1, 20, 256])
def test_sentences_that_nobody_has_counted_are_usual_ones(longest):
    lengths = synthetic_lengths(5000, longest)
    assert lengths.min() >= 1
    assert lengths.max() <= longest
    assert lengths[:, 1].sum() >= 5000
    if longest == 256:
        assert lengths.mean() == pytest.approx(27, rel=0.1)
