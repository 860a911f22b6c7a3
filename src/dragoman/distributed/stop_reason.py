"""Why a worker is asked to stop, beside the signal with which its agent asks it.

A signal carries a number alone, and an agent asks with SIGTERM whatever the cause: Ctrl-C at the
launcher, a host that is back, a launcher that is gone. So it first writes the reason where its
workers can read it. Without torch.
"""

import os
import signal
from collections.abc import Mapping
from pathlib import Path

REASON_FILE = "DRAGOMAN_STOP_REASON"
"""Path of a file that an agent sets for its workers; empty until they are asked to stop."""
ORPHANED = "the process that started the workers is gone"


def stop_signals() -> tuple[signal.Signals, ...]:
    """Returns the signals that ask a run to stop.

    Among them SIGHUP, which a closed terminal or a lost ssh connection sends, unless it is ignored,
    as it is under nohup.
    """
    is_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return (signal.SIGTERM, signal.SIGINT, *(() if is_ignored else (signal.SIGHUP,)))


def reason_of_signal(number: int) -> str:
    """Returns what a signal to stop means to a person."""
    if number == signal.SIGINT:
        return "asked to stop by Ctrl-C (SIGINT)"
    if number == signal.SIGTERM:
        return "asked to stop by SIGTERM, as batch systems, clouds and kill send it"
    if number == signal.SIGHUP:
        return "asked to stop by SIGHUP, as a terminal that is closed sends it"
    return f"asked to stop by {signal.Signals(number).name}"


def told_reason(variables: Mapping[str, str] = os.environ) -> str:
    """Returns the reason that this process's agent has written; empty if it has written none."""
    if REASON_FILE not in variables:
        return ""
    try:
        return Path(variables[REASON_FILE]).read_text(encoding="utf-8")
    except OSError:
        return ORPHANED  # the file is in the memory of the agent


class StopReason:
    """The agent's side: a file in memory, so that nothing is left behind however the agent ends."""

    def __init__(self) -> None:
        self._descriptor = os.memfd_create("stop-reason")

    @property
    def variables(self) -> dict[str, str]:
        """What a worker needs in its environment to read the reason."""
        return {REASON_FILE: f"/proc/{os.getpid()}/fd/{self._descriptor}"}

    def write(self, reason: str) -> None:
        """Replaces the reason; empty: none."""
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, reason.encode(), 0)

    def close(self) -> None:
        os.close(self._descriptor)
