import numpy as np
import pytest

from dragoman.preparation.encoding import repeats_of


@pytest.mark.parametrize(("weight", "expected"), [(2.0, 2.0), (0.25, 0.25), (1.5, 1.5)])
def test_a_weight_says_how_often_pairs_are_seen(weight, expected):
    keys = np.random.default_rng(1).integers(0, 2**64, 20_000, dtype=np.uint64)
    repeats = repeats_of(keys, weight)
    assert repeats.mean() == pytest.approx(expected, abs=0.02)
    assert set(repeats.tolist()) <= {int(weight), int(weight) + 1}
    assert repeats_of(keys, 1.0) is None
