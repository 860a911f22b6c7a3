import os
import signal

import pytest

from dragoman.distributed.stop_reason import StopReason
from dragoman.training.interruption import Interruption, StopRequest, common_stop, interruptions

TERM = StopRequest("signal", "asked to stop by SIGTERM")
INT = StopRequest("signal", "asked to stop by SIGINT")
NOTICE = StopRequest("notice", "AWS will stop this host at noon")


@pytest.mark.usefixtures("hang_up")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_becomes_a_request_and_afterwards_means_what_it_meant_before(number):
    before = signal.getsignal(number)
    with interruptions() as interruption:
        assert not interruption.is_requested
        os.kill(os.getpid(), number)
        assert interruption.request.cause == "signal"
        assert number.name in interruption.request.reason
    assert signal.getsignal(number) is before


def test_the_agents_reason_counts_more_than_its_signal(monkeypatch):
    reason, interruption = StopReason(), Interruption()
    for name, value in reason.variables.items():
        monkeypatch.setenv(name, value)
    reason.write("asked to stop by Ctrl-C (SIGINT)")
    interruption.receive(signal.SIGTERM, None)
    reason.close()
    assert interruption.request == StopRequest("signal", "asked to stop by Ctrl-C (SIGINT)")


def test_the_first_request_stays():
    interruption = Interruption()
    interruption.notice(NOTICE.reason)
    interruption.receive(signal.SIGTERM, None)
    assert interruption.request == NOTICE


def test_alone_nobody_needs_to_be_named_for_a_signal():
    assert common_stop(["n1"], [TERM]) == (TERM, None)


def test_who_was_asked_is_named_unless_all_were():
    assert common_stop(["n1", "n2"], [TERM, TERM]) == (TERM, None)
    assert common_stop(["n1", "n2"], [None, TERM]) == (TERM, (1, "n2"))
    assert common_stop(["n1", "n2"], [TERM, INT]) == (TERM, (0, "n1"))


def test_a_notice_explains_the_signals_that_come_with_it():
    assert common_stop(["n1", "n2"], [TERM, NOTICE]) == (NOTICE, (1, "n2"))
    assert common_stop(["n1"], [NOTICE]) == (NOTICE, (0, "n1"))


def test_what_a_notice_is_does_not_depend_on_its_words():
    reworded = StopRequest("notice", "asked to stop by SIGTERM, says the cloud")
    assert common_stop(["n1", "n2"], [TERM, reworded]) == (reworded, (1, "n2"))


def test_a_request_that_got_lost_still_stops_the_run():
    assert common_stop(["n1", "n2"], [None, None]).request.cause == "signal"
