import os
import signal

import pytest

from dragoman.training.interruption import Interruption, common_reason, interruptions


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_becomes_a_question_with_its_name(number):
    before = signal.getsignal(number)
    with interruptions() as interruption:
        assert (interruption.asked, interruption.reason) == (False, "")
        os.kill(os.getpid(), number)
        assert interruption.asked
        assert interruption.reason == f"asked to stop by {number.name}"
    assert signal.getsignal(number) is before


def test_the_first_reason_stays():
    interruption = Interruption()
    interruption.request("AWS will stop this host at noon")
    interruption.receive(signal.SIGTERM, None)
    assert interruption.reason == "AWS will stop this host at noon"


def test_alone_a_reason_is_told_as_it_is():
    assert common_reason([("n1", "asked to stop by SIGTERM")]) == "asked to stop by SIGTERM"


def test_who_was_asked_is_named_unless_all_were():
    term = "asked to stop by SIGTERM"
    assert common_reason([("n1", term), ("n2", term)]) == term
    assert common_reason([("n1", ""), ("n2", term)]) == f"rank 1 on n2: {term}"
    assert (
        common_reason([("n1", term), ("n2", "asked to stop by SIGINT")]) == f"rank 0 on n1: {term}"
    )


def test_a_notice_explains_the_signals_that_come_with_it():
    told = [("n1", "asked to stop by SIGTERM"), ("n2", "AWS will stop this host at noon")]
    assert common_reason(told) == "rank 1 on n2: AWS will stop this host at noon"


def test_a_reason_that_got_lost_leaves_a_sentence():
    assert common_reason([("n1", ""), ("n2", "")]) == "asked to stop"
