import socket

from dragoman.telemetry.sensors.interface import (
    InterfaceCounters,
    packet_size,
    read_interface_counters,
)


def test_counters_of_an_interface_grow_with_what_passes_it():
    before = read_interface_counters("lo")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"x" * 20_000, receiver.getsockname())
        receiver.recv(20_000)
    passed = read_interface_counters("lo").since(before)
    assert passed.sent >= 20_000
    assert passed.received >= 20_000


def test_differences_are_by_direction():
    assert InterfaceCounters(10, 7).since(InterfaceCounters(4, 5)) == InterfaceCounters(6, 2)


def test_an_interface_that_is_not_there_has_no_counters_and_usual_packets():
    assert read_interface_counters("no-such-one") is None
    assert packet_size("no-such-one") == 1500
    assert packet_size("lo") > 1500
