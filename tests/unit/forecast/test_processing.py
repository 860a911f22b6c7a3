import pytest

from dragoman.forecast.processing import CPU, GPU, average_s, outer_step_s, sum_in_bf16_s


def test_coding_takes_bytes_over_rates():
    """A million values, four ranks: rounded once and a quarter again, read twice."""
    expected = 4e6 * 1.25 / CPU.to_bf16 + 2 * 4e6 / CPU.from_bf16
    assert sum_in_bf16_s(10**6, 4, CPU) == pytest.approx(expected)


def test_two_ranks_gather_codes_and_decode_both():
    expected = 4e6 / CPU.encode_4bit + 2 * 4e6 / CPU.decode_4bit
    assert average_s("4bit", 10**6, 1, 2, CPU) == pytest.approx(expected)


def test_more_ranks_encode_their_slice_again():
    expected = 4e6 * 1.25 / CPU.encode_4bit + 2 * 4e6 / CPU.decode_4bit
    assert average_s("4bit", 10**6, 1, 4, CPU) == pytest.approx(expected)


@pytest.mark.parametrize("wire", ["fp32", "bf16", "4bit"])
def test_four_bits_cost_the_most_and_a_gpu_costs_less(wire):
    assert average_s(wire, 10**6, 1, 4, CPU) <= average_s("4bit", 10**6, 1, 4, CPU)
    assert average_s(wire, 10**6, 1, 4, GPU) < average_s(wire, 10**6, 1, 4, CPU)
    assert outer_step_s(10**6, GPU) < outer_step_s(10**6, CPU)


def test_only_on_a_cpu_communication_takes_the_computing_cores():
    assert GPU.communication_s_per_byte == 0 < CPU.communication_s_per_byte
