"""Ends a process when its parent is gone, whatever it is waiting for."""

import ctypes
import os
import signal
import threading
import time

PR_SET_PDEATHSIG = 1
POLL_EVERY_S = 0.5
SAVING_S = 30.0
"""How long a rank without a parent may take to finish its step and save."""

_libc = ctypes.CDLL(None)


def end_with_parent(parent: int, number: int) -> None:
    """Asks the kernel for this signal when the parent ends; exits if it already has.

    The kernel watches the thread of the parent that has started this process.
    """
    _libc.prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(1)


class ParentWatch:
    """Ends this process when its parent is gone: at once, or after `allow_saving` with a delay."""

    def __init__(self) -> None:
        self._parent = os.getppid()
        self._grace_s = 0.0
        threading.Thread(target=self._watch, name="parent watch", daemon=True).start()

    def allow_saving(self) -> None:
        """Allows time to save before the process is ended."""
        self._grace_s = SAVING_S

    def _watch(self) -> None:
        while os.getppid() == self._parent:
            time.sleep(POLL_EVERY_S)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(self._grace_s)
        os._exit(1)
