"""Averages of real ranks by each kind of wire; `wire_scenario.py` plays them."""

import pytest


@pytest.fixture
def seen(ranks, request):
    """What each rank has seen."""
    return request.getfixturevalue(ranks).seen("wire")


def averages(seen):
    return [(key, found) for key, found in seen.items() if "weights" in found]


@pytest.mark.parametrize("ranks", ["two", "three", "four"])
def test_all_ranks_end_with_the_same_bits_which_are_those_of_one_process(seen):
    for key, first in averages(seen[0]):
        assert {(rank[key]["bits"], rank[key]["reference"]) for rank in seen} == {
            (first["reference"], first["reference"])
        }, key


@pytest.mark.parametrize("ranks", ["two", "three", "four"])
def test_bytes_are_those_of_the_formula(seen):
    for rank in seen:
        for key, found in averages(rank):
            assert found["sent"] == found["counted"]
            if "model" in key:
                assert found["counted"] == pytest.approx(found["formula"], rel=0.01), key


@pytest.mark.parametrize("ranks", ["two", "three", "four"])
def test_errors_are_those_that_the_documentation_states(seen):
    for key, found in averages(seen[0]):
        if "model" in key:
            limit = {"fp32": 1e-6, "bf16": 4e-3, "4bit": 0.16}[key.split(",")[0]]
            assert found["error"] < limit, key


@pytest.mark.parametrize("ranks", ["two", "three", "four"])
def test_values_that_are_not_finite_are_reported_to_all_and_nothing_is_made_of_them(seen):
    for rank in seen:
        for found in rank["non-finite"].values():
            assert (found["mean"], found["ranks"]) == (None, [1])
            assert found["next"] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("ranks", ["two", "three", "four"])
def test_weights_that_make_no_mean_are_refused_by_all(seen):
    assert len({tuple(rank["bad weights"]) for rank in seen}) == 1
    assert all("0.0, 0.0" in rank["bad weights"][0] for rank in seen)
    assert all("-1.0" in rank["bad weights"][1] for rank in seen)
