import pytest

from dragoman.distributed.ring_bytes import bytes_per_step, on_the_wire

BASE = 60_880_896


def test_four_nodes_send_what_the_users_saw():
    """365 MB each way on 4 nodes, about 31 s at 100 Mbit/s."""
    sent = bytes_per_step(BASE, ranks=4, ranks_on_host=1, sharded=False)
    assert sent / 1e6 == pytest.approx(365.3, abs=0.1)
    assert on_the_wire(sent, 1500) * 8 / 100e6 == pytest.approx(30.6, abs=0.1)


def test_one_rank_sends_nothing_and_two_send_the_gradients_once():
    assert bytes_per_step(BASE, 1, 1, sharded=False) == 0
    assert bytes_per_step(BASE, 2, 1, sharded=False) == 4 * BASE


def test_on_one_host_all_that_ranks_send_passes_loopback():
    assert bytes_per_step(BASE, 4, 4, sharded=False) == 4 * bytes_per_step(
        BASE, 4, 1, sharded=False
    )


def test_several_ranks_on_a_host_share_one_way_out():
    assert bytes_per_step(BASE, 4, 2, sharded=False) == bytes_per_step(BASE, 4, 1, sharded=False)


def test_sharded_states_send_half_as_much_again():
    ratio = bytes_per_step(BASE, 2, 1, sharded=True) / bytes_per_step(BASE, 2, 1, sharded=False)
    assert ratio == 1.5


def test_large_packets_have_few_headers():
    assert on_the_wire(1e6, 1500) == pytest.approx(1.0456e6, rel=1e-3)
    assert on_the_wire(1e6, 65536) < 1.002e6
