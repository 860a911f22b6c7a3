"""Limits, cuts and partitions of links, seen by programs that talk over them."""

import time

import pytest
from labs import Talk, lab, start, talk
from processes import wait_until

from dragoman.lab.rates import parse_rate

pytestmark = pytest.mark.timeout(120)

TRIES = 8


def speed(it, limited):
    """Mbit/s from the kernel's counters, of what node1 sends or of what reaches node2."""
    first, second = it.status(over_s=0.7)
    return first.sent_mbit_per_s if limited == "node1" else second.received_mbit_per_s


def assert_holds(it, limited, rate):
    """Never above the limit; below it only while the machine has other things to do."""
    limit = parse_rate(rate) / 1e6
    seen = []
    for _ in range(TRIES):
        seen.append(speed(it, limited))
        assert seen[-1] <= 1.1 * limit
        if seen[-1] >= 0.9 * limit:
            return
    raise AssertionError(f"{rate}: never near it: {seen}")


@pytest.mark.parametrize("limited", ["node1", "node2"], ids=["sending", "receiving"])
def test_a_rate_holds_while_it_is_changed_under_a_transfer(limited):
    with lab(nodes=2) as it:
        it.rate(limited, "1mbit")
        address = it.node("node2").address
        talk(it, "node2", "swallow", address, 7000)
        talk(it, "node1", "pour", address, 7000)
        wait_until(lambda: it.status(over_s=0)[1].received_bytes > 50_000)
        for rate in ("1mbit", "10mbit", "100mbit", "1gbit"):
            it.rate(limited, rate)
            assert_holds(it, limited, rate)
        it.rate(limited, "none")
        assert any(speed(it, limited) > 1500 for _ in range(TRIES))


def test_a_program_gets_its_bytes_at_the_rate():
    size = 6_000_000
    with lab(nodes=2, rate="50mbit") as it:
        address = it.node("node2").address
        seen = []
        for port in range(7000, 7000 + TRIES):
            hearing = talk(it, "node2", "swallow", address, port)
            talk(it, "node1", "pour", address, port, size)
            total, seconds = hearing.communicate()[0].split()
            seen.append(int(total) * 8 / 1e6 / float(seconds))
            assert seen[-1] <= 1.1 * 50
            if seen[-1] >= 0.9 * 50:
                return
    raise AssertionError(f"never near 50 Mbit/s: {seen}")


def test_each_host_can_have_its_own_rate():
    with lab(nodes=3, rate="100mbit", node_rates={2: "10mbit", 3: "none"}) as it:
        assert [node.rate_bits for node in it.status(over_s=0)] == [100_000_000, 10_000_000, None]


def test_bytes_are_counted_on_the_links_that_carry_them():
    size = 5_000_000
    with lab(nodes=3) as it:
        address = it.node("node2").address
        before = it.status(over_s=0)
        swallow = talk(it, "node2", "swallow", address, 7000)
        talk(it, "node1", "pour", address, 7000, size).wait()
        swallow.wait()
        after = it.status(over_s=0)
        sent = [b.sent_bytes - a.sent_bytes for a, b in zip(before, after, strict=True)]
        received = [b.received_bytes - a.received_bytes for a, b in zip(before, after, strict=True)]
        # 66 bytes of headers for each packet of up to 1514; acknowledgments the other way.
        for counted in (sent[0], received[1]):
            assert 1.04 * size < counted < 1.08 * size
        for counted in (sent[1], received[0]):
            assert 0 < counted < 0.2 * size
        for counted in (sent[2], received[2]):
            assert counted < 10_000


def wait_for_numbers(line, more=10):
    enough = len(line.heard) + more
    wait_until(lambda: len(line.heard) >= enough, seconds=60)


def assert_silent_while(line, other):
    """Nothing new in `line` while `other` goes on; what was on its way has arrived before."""
    wait_for_numbers(other)
    heard = len(line.heard)
    wait_for_numbers(other, more=30)
    assert len(line.heard) == heard


def test_a_cut_link_is_silent_and_its_connections_go_on_when_it_heals():
    with lab(nodes=3) as it:
        line, other = Talk(it, "node1", "node2"), Talk(it, "node1", "node3")
        wait_for_numbers(line)
        it.cut("node2")
        assert [node.is_cut for node in it.status(over_s=0)] == [False, True, False]
        assert_silent_while(line, other)
        assert line.counting.poll() is None
        assert line.hearing.poll() is None
        it.heal("node2")
        wait_for_numbers(line)
        assert line.is_whole()
        assert other.is_whole()


def test_a_partition_parts_two_hosts_and_nobody_else():
    with lab(nodes=3) as it:
        pairs = (("node1", "node2"), ("node1", "node3"), ("node3", "node2"))
        line, other, back = (Talk(it, *pair, port) for port, pair in enumerate(pairs, 7000))
        for each in (line, other, back):
            wait_for_numbers(each)
        it.partition("node1", "node2")
        assert [node.parted_from for node in it.status(over_s=0)] == [("node2",), ("node1",), ()]
        assert_silent_while(line, other)
        wait_for_numbers(back)
        fresh = start(it, "node2", "timeout", "1", "bash", "-c", f"</dev/tcp/{_address(it)}/22")
        assert fresh.wait() == 124, "a new connection should wait for an answer in vain"
        it.heal("node2", "node1")
        wait_for_numbers(line)
        assert all(each.is_whole() for each in (line, other, back))
        assert all(node.parted_from == () for node in it.status(over_s=0))


def _address(it):
    return it.node("node1").address


def test_healing_a_host_undoes_all_that_was_done_to_its_link():
    with lab(nodes=3) as it:
        it.partition("node1", "node2")
        it.partition("node3", "node2")
        it.cut("node2")
        it.heal("node2")
        for node in it.status(over_s=0):
            assert (node.is_cut, node.parted_from) == (False, ())
        it.heal("node2")


def test_speed_is_that_of_the_time_watched():
    with lab(nodes=2) as it:
        address = it.node("node2").address
        talk(it, "node2", "swallow", address, 7000)
        talk(it, "node1", "pour", address, 7000, 3_000_000)
        wait_until(lambda: it.status(over_s=0)[1].received_bytes > 3_000_000)
        time.sleep(0.2)
        quiet = it.status(over_s=0.2)
        assert all(node.sent_mbit_per_s < 1 for node in quiet)
        assert quiet[0].sent_bytes > 3_000_000
