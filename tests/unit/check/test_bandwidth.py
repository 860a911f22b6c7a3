"""What arrives, as rates; and connections on the loopback interface."""

import secrets
import socket
import threading
from contextlib import suppress

import pytest

from dragoman.check import bandwidth
from dragoman.check.bandwidth import Arrival, is_settled, rate_of, receive, send
from dragoman.errors import RunError

HERE = "127.0.0.1"


def steady(bytes_per_s, passed_s, every_s=0.001, begin_at=0.0, begin=0):
    return [
        Arrival(begin_at + n * every_s, begin + int(n * every_s * bytes_per_s))
        for n in range(int(passed_s / every_s) + 1)
    ]


def test_a_burst_at_first_is_discarded():
    burst = [Arrival(0.0, 5_000_000)]
    arrivals = burst + [Arrival(a.at + 0.001, a.total_bytes + 5_000_000) for a in steady(1e6, 1.0)]
    assert rate_of(arrivals) == pytest.approx(1e6, rel=0.01)


def test_a_slow_start_is_discarded():
    ramp = [Arrival(0.001 * n, n * n) for n in range(200)]
    last = ramp[-1]
    arrivals = ramp + steady(1e7, 0.8, begin_at=last.at + 0.001, begin=last.total_bytes)
    assert rate_of(arrivals) == pytest.approx(1e7, rel=0.01)


@pytest.mark.parametrize("stall_at", [0.25, 0.5, 0.9])
def test_a_stall_that_is_made_up_for_changes_nothing(stall_at):
    """A lost packet holds back those behind it, which then arrive at once."""
    held = [a for a in steady(1e7, 1.0) if not stall_at < a.at < stall_at + 0.08]
    assert rate_of(held) == pytest.approx(1e7, rel=0.02)


def test_what_had_waited_for_a_lost_packet_does_not_flatter_the_link():
    """At 0.35 s, behind the warm-up, arrives what the kernel had held back before it."""
    held = [
        Arrival(a.at, a.total_bytes + (1_000_000 if a.at > 0.35 else 0)) for a in steady(1e7, 1.0)
    ]
    assert rate_of(held) == pytest.approx(1e7, rel=0.01)


def test_packets_that_are_far_apart_are_enough():
    assert rate_of(steady(125_000, 1.0, every_s=0.012)) == pytest.approx(125_000, rel=0.02)


def test_too_little_to_tell():
    assert rate_of([]) is None
    assert rate_of([Arrival(0.0, 10), Arrival(0.01, 20)]) is None


def test_it_is_settled_once_both_halves_agree():
    assert not is_settled([])
    assert not is_settled(steady(1e7, 0.3))  # too short
    assert is_settled(steady(1e7, 0.7))
    slower = steady(1e7, 0.5) + steady(2e6, 0.3, begin_at=0.501, begin=5_000_000)
    assert not is_settled(slower)


def received(several, **changed):
    """What both ends return over loopback, and the port between them."""
    secret = secrets.token_hex(32)
    measuring = receive(HERE, changed.get("expected", secret), several)
    port = next(measuring)
    results = {}

    def do():
        try:
            results["sent"] = send(HERE, HERE, port, secret, several)
        except RunError as error:
            results["sent"] = error

    sender = threading.Thread(target=do)
    sender.start()
    try:
        next(measuring)
    except StopIteration as done:
        results["received"] = done.value
    except RunError as error:
        results["received"] = error
    sender.join()
    return results, port


@pytest.mark.parametrize("several", [0, 4])
def test_both_ends_agree_to_stop_and_leave_no_socket(several):
    results, port = received(several)
    one, more = results["received"]
    assert one > 1e6
    assert more > 1e6
    assert (one == more) == (several == 0)
    assert 0 < results["sent"] < 1
    with pytest.raises(ConnectionRefusedError), socket.create_connection((HERE, port), 1.0):
        pass


def test_a_wrong_secret_is_turned_away(monkeypatch):
    monkeypatch.setattr(bandwidth, "CONNECT_S", 0.5)
    results, _ = received(0, expected="f" * 64)
    assert isinstance(results["received"], RunError)
    assert isinstance(results["sent"], RunError)


def test_strangers_who_come_first_are_not_in_the_way():
    secret = secrets.token_hex(32)
    measuring = receive(HERE, secret, 0)
    port = next(measuring)
    silent = [socket.create_connection((HERE, port)) for _ in range(5)]
    loud = socket.create_connection((HERE, port))
    loud.sendall(b"GET / HTTP/1.1\r\n" * 20)
    sender = threading.Thread(target=send, args=(HERE, HERE, port, secret, 0))
    sender.start()
    with pytest.raises(StopIteration) as done:
        next(measuring)
    sender.join()
    assert done.value.value.one_flow_bytes_per_s > 1e6
    for stranger in (*silent, loud):
        stranger.settimeout(2.0)
        with suppress(ConnectionError):
            assert stranger.recv(1) == b""  # closed
        stranger.close()


def test_nobody_comes(monkeypatch):
    monkeypatch.setattr(bandwidth, "CONNECT_S", 0.1)
    measuring = receive(HERE, "a" * 64, 4)
    port = next(measuring)
    with pytest.raises(RunError, match=HERE):
        next(measuring)
    with pytest.raises(ConnectionRefusedError), socket.create_connection((HERE, port), 1.0):
        pass


def test_a_sender_that_falls_silent(monkeypatch):
    monkeypatch.setattr(bandwidth, "DEADLINE_S", 0.3)
    measuring = receive(HERE, "a" * 64, 0)
    port = next(measuring)
    with socket.create_connection((HERE, port)) as silent:
        silent.sendall(b"a" * 64 + b"\0")
        with pytest.raises(RunError):
            next(measuring)


def test_nobody_listens():
    with socket.create_server((HERE, 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(RunError, match="refused"):
        send(HERE, HERE, port, "a" * 64, 0)


def test_an_address_of_another_host_cannot_be_listened_on():
    with pytest.raises(RunError, match=r"192\.0\.2\.1"):
        next(receive("192.0.2.1", "a" * 64, 0))
