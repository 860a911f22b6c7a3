import numpy as np

from dragoman.preparation.duplicates import decide, find_overlap


def test_the_first_of_equal_keys_stays():
    chance = np.random.default_rng(1)
    keys = chance.integers(0, 2**64, 300, dtype=np.uint64)[chance.integers(0, 300, 2000)]
    parts = np.split(keys, [100, 700, 701])
    held_out = keys[:3]
    decision = decide(parts, held_out, drop_duplicates=True)
    seen: set[int] = set()
    for key, duplicate, leak in zip(
        keys.tolist(), *(np.concatenate(flags) for flags in decision), strict=True
    ):
        assert leak == (key in held_out.tolist())
        assert duplicate == (key in seen and not leak)
        seen.add(key)


def test_pairs_of_several_sources_have_the_largest_weight():
    chance = np.random.default_rng(2)
    keys = chance.integers(0, 2**64, 300, dtype=np.uint64)[chance.integers(0, 300, 2000)]
    parts, source_of, weights = np.split(keys, [100, 700, 701]), [0, 1, 1, 2], [1.0, 0.5, 3.0]
    decision = decide(parts, keys[:3], drop_duplicates=True)
    kept = [~(duplicate | leak) for duplicate, leak in zip(*decision, strict=True)]
    found = find_overlap(parts, kept, source_of, weights)

    occurrences: dict[int, list[int]] = {}
    for part, source in zip(parts, source_of, strict=True):
        for key in part.tolist():
            occurrences.setdefault(key, []).append(source)
    for part, of_pairs in zip(parts, found.weights, strict=True):
        expected = [max(weights[source] for source in occurrences[key]) for key in part.tolist()]
        assert of_pairs.tolist() == expected
    expected_counts = [[0] * 3 for _ in parts]
    for number, part in enumerate(parts):
        for key, duplicate in zip(part.tolist(), decision.is_duplicate[number], strict=True):
            expected_counts[number][occurrences[key][0]] += int(duplicate)
    assert found.duplicates_of == expected_counts
