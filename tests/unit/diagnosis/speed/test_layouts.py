import math

import pytest
from unit.diagnosis.layout_run import write_layouts
from unit.diagnosis.speed_run import new_run, read
from unit.diagnosis.step_split import split

from dragoman.config import CostSettings
from dragoman.diagnosis.speed.layouts import (
    LayoutPace,
    comparison_of,
    layout_name,
    layouts_of,
    longest_layout,
    why_this_layout,
)

PRICE = CostSettings(host_per_hour=3.6)


def layout(hosts, step_s, ranks=None, steps=100, tokens=1000.0):
    return LayoutPace(hosts, ranks or hosts, [1], steps, split(compute_s=step_s), tokens, [])


def test_attempts_of_the_same_layout_are_one_and_others_are_never_mixed(tmp_path):
    facts = read(write_layouts(new_run(tmp_path), (2, 0.3), (4, 1.3), (2, 0.3), (1, 2.3)))
    two, four, one = layouts_of(facts)

    assert [(each.hosts, each.ranks) for each in (two, four, one)] == [(2, 2), (4, 4), (1, 1)]
    assert (two.attempts, four.attempts) == ([1, 3], [2])
    assert (two.steps, four.steps) == (38, 19)  # without the first of each attempt
    assert four.split.step_s - two.split.step_s == pytest.approx(1.0)
    assert (two.sent_bytes, four.predicted_bytes) == (2e6, 4e6)
    assert two.tokens_per_s == pytest.approx(100 / two.split.step_s)
    assert longest_layout([two, four, one]) is two
    assert why_this_layout(two, [two, four, one]) == "with which most steps were done"
    assert why_this_layout(one, [four, one]) == "the last of those with as many steps"


@pytest.mark.parametrize(
    ("four_s", "outcome"),
    [
        (2.1, "4 hosts are slower and dearer than 2 hosts were"),
        (1.6, "4 hosts are no faster than 2 hosts were, and dearer"),
        (1.2, "4 hosts are faster but dearer than 2 hosts were"),
        (0.8, "4 hosts are faster than 2 hosts were, for the same money"),
        (0.7, "4 hosts are faster and cheaper than 2 hosts were"),
    ],
)
def test_more_hosts_are_compared_by_speed_and_by_price(four_s, outcome):
    assert outcome in comparison_of([layout(2, 1.6), layout(4, four_s)], PRICE)


def test_the_price_is_that_of_all_hosts_for_a_million_tokens():
    four = layout(4, 2.0)

    assert four.tokens_per_s == 500
    assert four.cost_per_million_tokens(PRICE) == pytest.approx(4 * 3.6 * 2000 / 3600)
    assert math.isnan(four.cost_per_million_tokens(CostSettings()))


def test_the_largest_is_compared_with_the_fastest_of_the_smaller_ones():
    found = comparison_of([layout(1, 3.0), layout(2, 1.6), layout(4, 2.1), layout(3, 2.0)], PRICE)

    assert found.startswith("With 4 hosts a step takes 2.1 s instead of 1.6 s:")


def test_steps_of_other_sizes_are_compared_by_their_tokens():
    found = comparison_of([layout(2, 1.0), layout(4, 1.5, tokens=2000.0)], PRICE)

    assert "1,333 target tokens are trained in a second instead of 1,000" in found
    assert "faster but dearer" in found


def test_few_steps_are_not_compared():
    assert comparison_of([layout(2, 1.0), layout(4, 2.0, steps=3)], PRICE) == ""
    assert comparison_of([layout(2, 1.0)], PRICE) == ""
    assert comparison_of([], PRICE) == ""


def test_layouts_of_as_many_hosts_are_told_apart_by_their_ranks():
    one, two = layout(1, 1.0), layout(1, 0.6, ranks=2)

    assert layout_name(two, [one, two]) == "2 ranks on 1 host"
    assert layout_name(two, [two, layout(2, 1.0)]) == "1 host"
