import pytest
from checked import checked

from dragoman.check.result import Collective
from dragoman.config import load_config
from dragoman.forecast.collectives import all_reduce_s
from dragoman.forecast.processing import CPU
from dragoman.plan.data import data_of
from dragoman.plan.from_assumption import GLOO_RING, QUEUE_BYTES
from dragoman.plan.from_check import setup_from_check

CONFIG = load_config("wmt16-en-de")


def setup_of(result):
    return setup_from_check(CONFIG, result, data_of(CONFIG, len(result.hosts)))


def test_the_model_takes_what_the_all_reduce_took():
    result = checked(efficiency=0.8, backend="nccl")
    setup = setup_of(result)
    seconds = all_reduce_s(4 * result.collective.elements, setup.network("likely"))

    assert seconds == pytest.approx(result.collective.seconds[0], rel=1e-6)
    assert setup.hop_rate.is_measured
    assert setup.link_efficiency == pytest.approx(0.8)


def test_a_few_sums_of_gloo_count_beside_what_it_usually_makes_of_a_link():
    """Three unlucky ones at half of the rate, and as many more at the usual share."""
    unlucky = setup_of(checked(efficiency=0.5))
    assert unlucky.hop_rate.value == pytest.approx((0.5 + GLOO_RING) / 2 * 11.9e6)
    assert unlucky.hop_rate.high > 0.8 * 11.9e6
    fast = setup_of(checked(efficiency=0.5, rate=1e9))  # bound by cores, as all sums will be
    assert fast.hop_rate.value == pytest.approx(0.5e9)


def test_ports_are_those_of_an_exchange_in_which_all_send_to_all():
    """3 of 4 MB cross each port, in a second: the link carries four times as much."""
    setup = setup_of(checked(backend="nccl", all_to_all_s=(1.0, 1.0)))
    assert setup.send_rate == setup.receive_rate
    assert setup.send_rate.value == pytest.approx(3e6, rel=1e-3)
    assert setup.hop_rate.value == pytest.approx(11.9e6)
    assert setup_of(checked(backend="nccl")).send_rate.value == pytest.approx(11.9e6)


def test_a_ring_shows_that_a_slow_transfer_met_with_mishap():
    result = checked(efficiency=0.9)
    stuck = [each.model_copy(update={"one_flow_bytes_per_s": 4e6}) for each in result.transfers]
    setup = setup_of(result.model_copy(update={"transfers": tuple(stuck)}))
    assert setup.hop_rate.value == pytest.approx(0.9 * 11.9e6 * (1 + GLOO_RING) / 2)


def test_one_flow_counts_where_several_carry_far_more():
    result = checked(has_collective=False)
    lost = [each.model_copy(update={"one_flow_bytes_per_s": 9e6}) for each in result.transfers]
    capped = [each.model_copy(update={"one_flow_bytes_per_s": 2e6}) for each in result.transfers]

    assert setup_of(result.model_copy(update={"transfers": tuple(lost)})).hop_rate.value == 11.9e6
    assert setup_of(result.model_copy(update={"transfers": tuple(capped)})).hop_rate.value == 2e6


def test_without_an_all_reduce_the_slowest_hop_of_the_ring_counts():
    result = checked(has_collective=False)
    slow = result.transfers[3].model_copy(update={"one_flow_bytes_per_s": 1e6})
    assert (slow.sender, slow.receiver) == ("node2", "node1")  # no hop of the ring
    off_the_ring = result.model_copy(
        update={"transfers": (*result.transfers[:3], slow, *result.transfers[4:])}
    )
    slow = result.transfers[0].model_copy(update={"one_flow_bytes_per_s": 1e6})
    on_the_ring = result.model_copy(update={"transfers": (slow, *result.transfers[1:])})

    assert setup_of(off_the_ring).hop_rate.value == 11.9e6
    assert setup_of(on_the_ring).hop_rate.value == 1e6


def test_the_cores_work_is_within_what_the_all_reduce_allows():
    """1 MB in 1 ms beyond the wire: at least 1 ns a byte; and no more than all of its time."""
    usual = CPU.communication_s_per_byte
    slow_link = setup_of(checked(rate=1e6)).contention
    busy = setup_of(checked(rate=1e8, efficiency=0.5)).contention
    fast = checked(rate=1e10)
    quick = Collective(**fast.collective.model_dump() | {"seconds": (1e-3,), "latency_s": 0.0})

    assert slow_link.value == usual
    assert busy.value == pytest.approx(1e-8, rel=0.05)
    assert setup_of(fast.model_copy(update={"collective": quick})).contention.value == (
        pytest.approx(1e-3 / 6e6)
    )
    assert setup_of(checked(driver="550")).contention.value == 0


def test_a_large_message_delays_small_ones_by_a_queue():
    setup = setup_of(checked(backend="nccl"))
    assert setup.queue_s.value == pytest.approx(QUEUE_BYTES / 11.9e6)
    assert setup.with_rate(119e6).queue_s.value == pytest.approx(QUEUE_BYTES / 119e6)
    assert setup_of(checked(hosts=1)).queue_s.value == 0
