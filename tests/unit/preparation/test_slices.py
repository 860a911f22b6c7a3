from dragoman.preparation import slices
from dragoman.preparation.slices import Share, count_slices


def test_slices_are_counted_alike(digits_config):
    assert count_slices(digits_config.data, 100) == 8
    assert count_slices(digits_config.data, 799) == 2
    assert [s.number for s in slices.slices(digits_config.data, Share(1, 3).has, 100)] == [1, 4, 7]


def test_a_slice_of_very_long_lines_has_fewer_of_them(recipe, monkeypatch):
    data = recipe().data
    whole = [pair for part in slices.slices(data, lambda _: True) for pair in part.pairs]
    monkeypatch.setattr(slices, "CHARACTERS_PER_SLICE", 1000)
    parts = list(slices.slices(data, lambda _: True))
    assert [pair for part in parts for pair in part.pairs] == whole
    assert [part.number for part in parts] == list(range(count_slices(data)))
    longest = max(len(pair.source) + len(pair.target) for pair in whole)
    assert len(parts) > 1
    for part in parts:
        assert sum(len(pair.source) + len(pair.target) for pair in part.pairs) <= 1000 + longest
