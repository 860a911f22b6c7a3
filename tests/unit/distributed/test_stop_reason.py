"""With the environment of a worker and the file of its agent, in one process."""

import os
import signal
import subprocess
import sys

from dragoman.distributed.stop_reason import (
    ORPHANED,
    REASON_FILE,
    StopReason,
    reason_of_signal,
    stop_signals,
    told_reason,
)


def test_ctrl_c_and_sigterm_are_told_apart():
    assert "Ctrl-C" in reason_of_signal(signal.SIGINT)
    assert "SIGTERM" in reason_of_signal(signal.SIGTERM)
    assert "Ctrl-C" not in reason_of_signal(signal.SIGTERM)
    assert "SIGHUP" in reason_of_signal(signal.SIGHUP)


def test_a_closed_terminal_asks_to_stop_unless_it_is_to_be_survived():
    before = signal.getsignal(signal.SIGHUP)
    try:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        assert signal.SIGHUP in stop_signals()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
        assert set(stop_signals()) == {signal.SIGTERM, signal.SIGINT}
    finally:
        signal.signal(signal.SIGHUP, before)
    assert "terminal" in reason_of_signal(signal.SIGHUP)


def test_without_an_agent_there_is_no_reason_beside_the_signal():
    assert told_reason({}) == ""


def test_a_worker_reads_what_its_agent_has_written_last():
    reason = StopReason()
    assert told_reason(reason.variables) == ""
    reason.write("asked to stop by a long sentence")
    reason.write("a host is back – paused")
    assert told_reason(reason.variables) == "a host is back – paused"
    code = "from dragoman.distributed.stop_reason import told_reason; print(told_reason())"
    environment = dict(os.environ) | reason.variables
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "a host is back – paused\n"
    reason.write("")
    assert told_reason(reason.variables) == ""
    reason.close()


def test_an_agent_that_is_gone_is_the_reason():
    assert told_reason({REASON_FILE: f"/proc/{1 << 30}/fd/3"}) == ORPHANED
