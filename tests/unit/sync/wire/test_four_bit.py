import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dragoman.sync.wire import four_bit

FLOATS = st.floats(-1e6, 1e6, width=32)


def encoded(values: Tensor) -> tuple[Tensor, Tensor]:
    codes = torch.full((four_bit.code_bytes(values.numel()),), 255, dtype=torch.uint8)
    table = torch.full((four_bit.BINS,), math.nan)
    assert four_bit.encode(values, codes, table)
    return codes, table


def round_trip(values: Tensor) -> Tensor:
    decoded = torch.full_like(values, math.nan)
    four_bit.decode(*encoded(values), decoded)
    return decoded


def normal(elements: int, mean: float = 0.0, deviation: float = 1.0) -> Tensor:
    draws = torch.randn(elements, generator=torch.Generator().manual_seed(elements))
    return mean + deviation * draws


@given(st.lists(FLOATS, max_size=50))
def test_values_within_the_range_are_off_by_a_bin_at_most(numbers):
    values = torch.tensor(numbers)
    decoded = round_trip(values)
    if numbers:
        deviation = values.double().std(correction=0)
        inside = (values.double() - values.double().mean()).abs() < 2.99 * deviation
        width = four_bit.RANGE_SIGMAS / four_bit.BINS * deviation
        rounding = 1e-6 * values.abs().max()
        assert ((values - decoded).abs() <= 1.01 * width + rounding)[inside].all()


@given(st.lists(FLOATS, min_size=1, max_size=50))
def test_the_mean_survives(numbers):
    values = torch.tensor(numbers)
    lost = (round_trip(values).double().mean() - values.double().mean()).abs()
    assert lost <= 1e-7 * values.abs().max()


@given(st.floats(-(2.0**50), 2.0**50, width=32), st.integers(1, 70))
def test_a_constant_is_exact(number, elements):
    values = torch.full((elements,), number)
    assert torch.equal(round_trip(values), values)


def test_a_constant_is_exact_beyond_one_chunk():
    values = torch.full((100_001,), 0.1)
    assert torch.equal(round_trip(values), values)


@pytest.mark.parametrize("elements", [65_407, 65_408, 65_409, 100_001])
def test_a_normal_distribution_is_off_by_a_ninth_of_its_deviation(elements):
    values = normal(elements, mean=1e-5, deviation=1e-4)
    error = (round_trip(values) - values).square().mean().sqrt() / 1e-4
    assert 0.10 < error < 0.12


@pytest.mark.parametrize(
    ("mean", "deviation"), [(0.0, 1e-25), (1.0, 1e-5), (-1e4, 1.0), (0.0, 1e12), (1e-30, 1e-32)]
)
def test_scale_and_place_do_not_matter(mean, deviation):
    values = normal(40_001, mean, deviation)
    error = (round_trip(values).double() - values).square().mean().sqrt() / deviation
    assert error < 0.13


def test_outliers_do_not_spoil_the_rest():
    values = normal(40_000)
    values[17] = 1000.0
    decoded = round_trip(values)
    rest = torch.arange(40_000) != 17
    deviation = values.std()
    assert (decoded - values)[rest].abs().max() < four_bit.RANGE_SIGMAS / 16 * deviation * 1.01
    assert decoded[17] == 1000.0  # alone in its bin


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e30])
@pytest.mark.parametrize("place", [0, 70_000])
def test_values_that_cannot_be_encoded_are_reported(bad, place):
    values = normal(70_001)
    values[place] = bad
    codes, table = torch.empty(35_001, dtype=torch.uint8), torch.empty(16)
    assert not four_bit.encode(values, codes, table)


def test_the_number_of_threads_changes_nothing():
    values = normal(300_001)
    codes, table = encoded(values)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        again, table_again = encoded(values)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(codes, again)
    assert torch.equal(table, table_again)


def test_decoding_can_add_and_begin_at_any_byte():
    values = normal(70_001)
    codes, table = encoded(values)
    expected = round_trip(values)[66:] + 2.0
    sums = torch.full((70_001,), 2.0)
    four_bit.decode(codes[33:], table, sums[66:], add=True)
    assert torch.equal(sums[66:], expected)
    assert (sums[:66] == 2.0).all()


def test_two_values_share_a_byte():
    assert [four_bit.code_bytes(n) for n in (0, 1, 2, 3)] == [0, 1, 1, 2]
    codes, table = encoded(torch.tensor([-1.0, 1.0, -1.0]))
    low, high = int(codes[0] & 15), int(codes[0] >> 4)
    assert (table[low], table[high]) == (-1.0, 1.0)
    assert int(codes[1]) == low  # the other half is unused
