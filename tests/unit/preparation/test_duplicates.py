import numpy as np
import pytest

from dragoman.preparation.duplicates import decide


@pytest.mark.parametrize("keys_at_once", [10, 100, 10_000])
def test_the_first_of_equal_keys_stays_whatever_is_compared_at_once(keys_at_once):
    chance = np.random.default_rng(1)
    keys = chance.integers(0, 2**64, 300, dtype=np.uint64)[chance.integers(0, 300, 2000)]
    parts = np.split(keys, [100, 700, 701])
    held_out = keys[:3]
    decision = decide(parts, held_out, drop_duplicates=True, keys_at_once=keys_at_once)
    seen: set[int] = set()
    for key, duplicate, leak in zip(
        keys.tolist(), *(np.concatenate(flags) for flags in decision), strict=True
    ):
        assert leak == (key in held_out.tolist())
        assert duplicate == (key in seen and not leak)
        seen.add(key)
