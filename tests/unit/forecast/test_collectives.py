import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import SyncSettings
from dragoman.distributed.ring_bytes import bytes_of_mode, bytes_per_step
from dragoman.forecast.collectives import (
    Network,
    all_gather_s,
    all_reduce_s,
    all_to_all_s,
    broadcast_s,
    reduce_scatter_s,
)

FAST = 1e15
FOUR = Network(4, 1, 1e8, 1e8, 1e8, latency_s=0.0, local_rate=FAST, local_latency_s=0.0)


def test_a_ring_takes_its_bytes_over_the_rate_of_its_slowest_hop():
    """60,880,896 parameters in fp32 on four nodes at 100 Mbit/s: 365 MB, 29.2 s."""
    parameters = 60_880_896
    slow = FOUR._replace(hop_rate=12.5e6)

    assert all_reduce_s(4 * parameters, slow) == pytest.approx(29.22, abs=0.01)
    sent = bytes_per_step(parameters, 4, 1, sharded=False)
    assert all_reduce_s(4 * parameters, slow) == pytest.approx(sent / 12.5e6)


def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather():
    whole = reduce_scatter_s(8e8, FOUR) + all_gather_s(8e8, FOUR)
    assert all_reduce_s(8e8, FOUR) == whole == pytest.approx(12.0)


def test_each_step_of_a_ring_has_its_latency():
    assert all_reduce_s(0.0, FOUR._replace(latency_s=0.01)) == pytest.approx(6 * 0.01)


def test_workers_of_one_host_take_the_way_inside():
    inside = FOUR._replace(hosts=1, ranks_on_host=2, local_rate=1e9, local_latency_s=0.001)
    assert all_reduce_s(1e9, inside) == pytest.approx(1.002)
    assert broadcast_s(1e9, inside) == pytest.approx(1.001)


def test_an_all_to_all_is_bound_by_the_slower_direction_of_the_ports():
    """Each of four sends three quarters of its payload."""
    ports = FOUR._replace(send_rate=1e8, receive_rate=5e7)
    assert all_to_all_s(4e8, ports) == pytest.approx(3e8 / 5e7)


@pytest.mark.parametrize("hosts", [2, 3, 8])
@pytest.mark.parametrize("on_host", [1, 4])
def test_bytes_over_the_rate_are_those_of_the_formula_for_every_collective(hosts, on_host):
    network = FOUR._replace(hosts=hosts, ranks_on_host=on_host)
    sent = bytes_of_mode(SyncSettings(mode="bf16"), 10**6, network.ranks, on_host, hosts)
    seconds = all_to_all_s(2e6, network) + all_gather_s(2e6, network)

    assert seconds == pytest.approx(sent / 1e8, rel=1e-3)


def test_one_rank_has_nothing_to_wait_for():
    alone = FOUR._replace(hosts=1, latency_s=1.0, local_latency_s=1.0)
    assert all_reduce_s(1e9, alone) == all_to_all_s(1e9, alone) == 0.0


@given(st.integers(1, 50), st.integers(1, 8), st.floats(1e3, 1e12), st.floats(1.0, 1e3))
def test_more_bandwidth_never_takes_longer(hosts, on_host, rate, factor):
    slow = Network(hosts, on_host, rate, rate, rate, 1e-4, 1e9, 1e-5)
    fast = slow._replace(
        hop_rate=factor * rate, send_rate=factor * rate, receive_rate=factor * rate
    )
    for collective in (all_reduce_s, all_to_all_s, all_gather_s):
        assert collective(1e8, fast) <= collective(1e8, slow)
