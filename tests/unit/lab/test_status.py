import pytest
from labs import lab

from dragoman.lab.kernel import Process
from dragoman.lab.status import is_paused, mbit_per_s


def test_speed_is_in_bits_and_nothing_takes_no_time():
    assert mbit_per_s(1_000_000, 2_000_000, 2.0) == 4.0
    assert mbit_per_s(0, 10, 0.0) == 0.0


def test_a_node_is_paused_when_all_of_its_processes_are():
    stopped, running = Process(1, "T", "sshd"), Process(2, "S", "python")
    assert is_paused([stopped, stopped])
    assert not is_paused([stopped, running])
    assert not is_paused([]), "it is not running at all"


@pytest.mark.cluster
def test_a_lab_says_what_has_been_done_to_it():
    with lab(nodes=2, rate="100mbit") as it:
        first, second = it.status(over_s=0.1)
        assert (first.rate_bits, first.is_running, first.is_cut) == (100_000_000, True, False)
        assert first.parted_from == ()
        it.rate("node1", "10mbit", "receive")
        first, second = it.status(over_s=0)
        assert (first.rate_bits, first.receive_rate_bits) == (100_000_000, 10_000_000)
        assert (second.rate_bits, second.receive_rate_bits) == (100_000_000, 100_000_000)
        it.partition("node1", "node2")
        it.cut("node2")
        it.pause("node1")
        first, second = it.status(over_s=0.1)
        assert (first.parted_from, second.parted_from) == (("node2",), ("node1",))
        assert (first.is_cut, second.is_cut) == (False, True)
        assert (first.is_paused, second.is_paused) == (True, False)
        it.kill("node2")
        assert not it.status(over_s=0.1)[1].is_running
