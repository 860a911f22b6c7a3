import pytest

from dragoman.comparison.aspects import Row, differing, measured


@pytest.mark.parametrize(
    ("a", "b", "ratio"), [(2.0, 3.0, 1.5), (2.0, 0.0, 0.0), (0.0, 3.0, None), (None, 3.0, None)]
)
def test_the_ratio_is_the_second_over_the_first_where_they_can_be_divided(a, b, ratio):
    assert measured("step", a, b, "s").ratio == ratio


def test_only_rows_that_differ_remain():
    same, other = Row("width", 512, 512), Row("layers", 6, None)

    assert differing([same, other]) == [other]
