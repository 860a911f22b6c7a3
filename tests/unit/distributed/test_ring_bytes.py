import pytest

from dragoman.config import SyncSettings
from dragoman.distributed.ring_bytes import (
    bytes_of_mode,
    bytes_per_step,
    mean_bytes_of_mode,
    on_the_wire,
)

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


@pytest.mark.parametrize(("ranks", "here", "hosts"), [(2, 1, 2), (4, 1, 4), (3, 3, 1)])
def test_bf16_halves_the_bytes(ranks, here, hosts):
    exact, halved = (
        bytes_of_mode(SyncSettings(mode=mode), BASE, ranks, here, hosts)
        for mode in ("fp32", "bf16")
    )
    assert exact == bytes_per_step(BASE, ranks, here, sharded=False)
    assert halved == pytest.approx(exact / 2)


def test_several_ranks_of_a_host_each_send_their_slices_in_bf16():
    """Two of four are elsewhere: half of the bytes of either rank, and a ring for the sums."""
    sent = bytes_of_mode(SyncSettings(mode="bf16"), BASE, ranks=4, ranks_on_host=2, hosts=2)
    assert sent == pytest.approx(2 * BASE * (2 * 2 / 4 + 3 / 4))


def test_larger_updates_send_as_much_as_others():
    settings = SyncSettings(mode="accumulate", accumulate=4)
    assert bytes_of_mode(settings, BASE, 2, 1, 2) == 4 * BASE


def test_local_steps_send_the_weights_once_in_a_window():
    settings = SyncSettings(mode="local", local_steps=5)
    assert bytes_of_mode(settings, BASE, 2, 1, 2) == pytest.approx(4 * BASE)
    assert mean_bytes_of_mode(settings, BASE, 2, 1, 2) == pytest.approx(4 * BASE / 5)


@pytest.mark.parametrize(("wire", "bytes_a_value"), [("fp32", 4.0), ("bf16", 2.0), ("4bit", 0.5)])
def test_the_wire_decides_how_many_bytes_a_window_has(wire, bytes_a_value):
    settings = SyncSettings(mode="local", wire=wire)
    for ranks in (2, 4):
        sent = bytes_of_mode(settings, BASE, ranks, 1, ranks)
        assert sent == pytest.approx(2 * (ranks - 1) / ranks * bytes_a_value * BASE, rel=0.002)


def test_several_ranks_of_a_host_each_send_their_slices_in_4_bits():
    """As with gradients in bf16: half of either rank's slices, and a ring for the means."""
    settings = SyncSettings(mode="local", wire="4bit")
    sent = bytes_of_mode(settings, BASE, ranks=4, ranks_on_host=2, hosts=2)
    assert sent == pytest.approx(BASE / 2 * (2 * 2 / 4 + 3 / 4), rel=0.002)
    within = bytes_of_mode(settings, BASE, ranks=2, ranks_on_host=2, hosts=1)
    assert within == 2 * bytes_of_mode(settings, BASE, ranks=2, ranks_on_host=1, hosts=2)


def test_hosts_that_synchronize_are_one_ring_whatever_their_ranks():
    settings = SyncSettings(mode="diloco", group="host")
    assert bytes_of_mode(settings, BASE, 16, 8, 2) == pytest.approx(4 * BASE)
    # On a single host there is nobody to synchronize with, and every step is exact.
    assert mean_bytes_of_mode(settings, BASE, 2, 2, 1) == bytes_per_step(BASE, 2, 2, sharded=False)


def test_large_packets_have_few_headers():
    assert on_the_wire(1e6, 1500) == pytest.approx(1.0456e6, rel=1e-3)
    assert on_the_wire(1e6, 65536) < 1.002e6
