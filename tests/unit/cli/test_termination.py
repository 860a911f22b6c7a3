import os
import signal
import sys
from functools import partial

import pexpect
import pytest

from dragoman.cli.termination import orderly_termination

TERMINATIONS = [signal.SIGTERM, signal.SIGHUP]


@pytest.fixture(autouse=True)
def handlers():
    """Those of the tests' own process, which a shell may have given others."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in TERMINATIONS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", TERMINATIONS)
def test_a_signal_ends_the_command_after_its_cleaning_up_which_another_does_not_end(number):
    cleaned = []

    @orderly_termination()
    def command():
        try:
            os.kill(os.getpid(), number)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            cleaned.append(True)

    with pytest.raises(SystemExit) as exit_:
        command()
    assert exit_.value.code == 128 + number
    assert cleaned
    assert signal.getsignal(number) is signal.SIG_DFL


def test_a_signal_that_is_ignored_stays_so():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with orderly_termination():
        os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_a_terminal_shows_again_what_is_typed():
    program = (
        "import readline\nfrom dragoman.cli.termination import orderly_termination\n"
        "with orderly_termination():\n    input('ready> ')\n"
    )
    child = pexpect.spawn(
        *(sys.executable, ["-c", program]),
        env=os.environ | {"TERM": "xterm"},
        encoding="utf-8",
        timeout=60,
        preexec_fn=partial(signal.signal, signal.SIGTERM, signal.SIG_DFL),
    )
    child.expect("ready> ")
    child.send("typed")
    child.expect("typed")  # by now the line is edited by readline, which shows it itself
    assert not child.getecho()
    child.kill(signal.SIGTERM)
    child.wait()
    assert child.getecho()
    assert child.exitstatus == 128 + signal.SIGTERM
    child.close()
