import pytest

from dragoman.config import load_config
from dragoman.plan.assumption import parse_assumption
from dragoman.plan.data import data_of
from dragoman.plan.from_assumption import GLOO_RING, GPU_UTILIZATION, setup_from_assumption

CONFIG = load_config("wmt16-en-de")


def setup_of(text, config=CONFIG):
    return setup_from_assumption(config, parse_assumption(text), data_of(config, 1))


def test_headers_take_their_share_of_a_port():
    setup = setup_of("4 nodes, 1gbit, 14 TFLOP/s")
    assert setup.hop_rate.value == pytest.approx(125e6 * 1448 / 1514)
    assert not setup.hop_rate.is_measured


def test_gloo_makes_less_of_a_link_than_nccl():
    on_gpu, on_cpu = (setup_of(f"4 nodes, 1gbit, 1 TFLOP/s, {device}") for device in ("gpu", "cpu"))
    assert on_cpu.hop_rate.value == pytest.approx(GLOO_RING * on_gpu.hop_rate.value)
    assert on_cpu.send_rate.value < on_cpu.hop_rate.value
    assert on_cpu.with_rate(1e6).hop_rate.value == pytest.approx(GLOO_RING * 1e6)


def test_the_slower_direction_is_that_of_the_ring():
    setup = setup_of("4 nodes, 1gbit send, 100mbit receive, 14 TFLOP/s")
    assert setup.hop_rate == setup.receive_rate
    assert setup.send_rate.value == pytest.approx(10 * setup.receive_rate.value)


def test_given_seconds_are_those_of_a_step():
    assert setup_of("4 nodes, 1gbit, 1.8 s").work("likely").seconds == pytest.approx(1.8)
    assert setup_of("3 nodes, 1gbit, 1.8 s").work("likely").seconds == pytest.approx(1.8)


def test_a_device_reaches_its_usual_share_unless_another_is_given():
    usual, own = (
        setup_of(f"4 nodes, 1gbit, 14 TFLOP/s{more}").work("likely") for more in ("", ", 70 %")
    )
    assert usual.backward_s == pytest.approx(own.backward_s * 0.7 / GPU_UTILIZATION)


def test_on_a_cpu_communication_takes_cores():
    on_cpu, on_gpu = (setup_of(f"4 nodes, 1gbit, 1 TFLOP/s, {device}") for device in ("cpu", "gpu"))
    assert on_cpu.contention.value > 0 == on_gpu.contention.value


def test_the_price_is_that_of_the_words_or_of_the_recipe():
    config = load_config("wmt16-en-de", ["cost.host_per_hour=2.0"])
    assert setup_of("4 nodes, 1gbit, 1 TFLOP/s, 0.5/h", config).price_per_hour == 2.0
    assert setup_of("4 nodes, 1gbit, 1 TFLOP/s", config).price_per_hour == 8.0
