import numpy as np
import pytest

from dragoman.errors import UserError
from dragoman.preparation import prepare
from dragoman.preparation.encoding import repeats_of


@pytest.mark.parametrize(("weight", "expected"), [(2.0, 2.0), (0.25, 0.25), (1.5, 1.5)])
def test_a_weight_says_how_often_pairs_are_seen(weight, expected):
    keys = np.random.default_rng(1).integers(0, 2**64, 20_000, dtype=np.uint64)
    repeats = repeats_of(keys, weight)
    assert repeats.mean() == pytest.approx(expected, abs=0.02)
    assert set(repeats.tolist()) <= {int(weight), int(weight) + 1}
    assert repeats_of(keys, 1.0) is None


def test_weights_that_leave_no_pair_are_refused(recipe, digits):
    text = digits.read_text(encoding="utf-8")
    weighted = text.replace('target = "train.de" }', 'target = "train.de", weight = 0.0001 }')
    digits.write_text(weighted, encoding="utf-8")
    with pytest.raises(UserError, match=r"data\.train.*0\.0001.* 800 "):
        prepare(recipe())


def test_a_weight_for_each_pair_is_that_of_the_pair():
    keys = np.random.default_rng(1).integers(0, 2**64, 1000, dtype=np.uint64)
    each = np.where(np.arange(1000) % 2 == 0, 2.25, 1.0)
    repeats = repeats_of(keys, each)
    assert (repeats[1::2] == 1).all()
    assert (repeats[::2] == repeats_of(keys, 2.25)[::2]).all()
