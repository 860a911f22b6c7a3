"""How a benchmark ends: early or not, it shows what it has, where and with which command."""

import datetime
import os
import platform
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from train_bench.environments import TORCH


@contextmanager
def ended_early_or_not() -> Iterator[None]:
    """Leaves the block at Ctrl-C or SIGTERM, so that the caller can show what was measured.

    What the block has started is ended by whatever started it, on the way out.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        yield


def closing_line(measured: str, begun: float, threads: str) -> str:
    """Returns date, machine, what was measured in how many minutes since `begun`, and the command.

    `begun` is a time of the monotonic clock.
    """
    minutes = (time.monotonic() - begun) / 60
    return (
        f"{datetime.date.today()}, {_machine()}, {TORCH} with {threads}; {measured}, "
        f"{minutes:.0f} minutes in all; command: {' '.join(['python', *sys.argv])}"
    )


def _machine() -> str:
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(": ")[2]
            break
    return f"{model}, {os.cpu_count()} cores"
