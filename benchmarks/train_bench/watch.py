"""Runs a command and samples what it and its children use of processor and memory."""

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from train_bench.measurement import Usage

SAMPLE_EVERY_S = 0.25
TAIL_CHARACTERS = 600
STOPPING_S = 5.0
HALTED = (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)


class CandidateError(Exception):
    """A candidate did not get through its steps."""


class Watched(NamedTuple):
    started_at: float
    """On the machine's monotonic clock."""
    usage: list[Usage]


def run_watched(
    command: Sequence[str], output: Path, limit_s: float, extra: Mapping[str, str]
) -> Watched:
    """Runs a command until it ends; what it prints goes to `output`.

    A command that fails or takes too long raises CandidateError with the end of its output.
    """
    with output.open("wb") as file:
        started_at = time.monotonic()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, **extra},
        )
        usage = []
        tree = ProcessTree(process.pid)
        try:
            while process.poll() is None:
                usage.append(tree.sample())
                if time.monotonic() - started_at > limit_s:
                    raise CandidateError(f"not done after {limit_s:.0f} s: {tail(output)}")
                time.sleep(SAMPLE_EVERY_S)
        finally:
            tree.end()
            process.wait()
    if process.returncode:
        raise CandidateError(f"exit code {process.returncode}: {tail(output)}")
    return Watched(started_at, usage)


class ProcessTree:
    """A process and its descendants; those that have ended keep counting."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._seen: dict[int, psutil.Process] = {}
        self._cpu_s: dict[int, float] = {}
        self._peak_bytes = 0
        self._stopped: list[psutil.Process] = []

    def sample(self) -> Usage:
        at = time.monotonic()
        try:
            root = self._seen.setdefault(self._root, psutil.Process(self._root))
            for child in root.children(recursive=True):
                self._seen.setdefault(child.pid, child)
        except psutil.Error:
            pass
        resident_bytes = own_bytes = 0
        for number, process in self._seen.items():
            try:
                used = process.cpu_times()
                self._cpu_s[number] = used.user + used.system
                self._peak_bytes = max(self._peak_bytes, _peak_bytes(number))
                memory = process.memory_info()
                resident_bytes += memory.rss
                own_bytes += memory.rss - memory.shared
            except (psutil.Error, OSError):
                continue
        cpu_s = sum(self._cpu_s.values())
        return Usage(at, cpu_s, self._peak_bytes, resident_bytes, own_bytes)

    def stop(self) -> None:
        """Stops all processes until `go_on`, parents before their children.

        A process that watches its children must not see them stopped, and one that has not
        stopped yet may still start another.
        """
        self._stopped = []
        waiting = [self._seen.setdefault(self._root, psutil.Process(self._root))]
        while waiting:
            process = waiting.pop(0)
            with suppress(psutil.NoSuchProcess):
                process.suspend()
                _wait_until_stopped(process)
                self._stopped.append(process)
                waiting += process.children()

    def go_on(self) -> None:
        """Continues what `stop` has stopped, children before their parents."""
        for process in reversed(self._stopped):
            with suppress(psutil.NoSuchProcess):
                process.resume()
        self._stopped = []

    def end(self) -> None:
        """Ends what is left, children first."""
        for process in reversed(self._seen.values()):
            try:
                process.kill()
            except psutil.Error:
                continue


def _wait_until_stopped(process: psutil.Process) -> None:
    """Waits for a signal that has been sent; one that waits for a disk receives it later."""
    until = time.monotonic() + STOPPING_S
    while process.status() not in HALTED and time.monotonic() < until:
        time.sleep(0.001)


def _peak_bytes(process_id: int) -> int:
    for line in Path(f"/proc/{process_id}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return 1024 * int(line.split()[1])
    return 0  # it has ended and is waited for


def tail(output: Path) -> str:
    """Returns the end of what a candidate has printed."""
    return " ".join(output.read_text(errors="replace").split())[-TAIL_CHARACTERS:]
