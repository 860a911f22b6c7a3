"""Runs a command and samples what it and its children use of processor and memory."""

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from train_bench.measurement import Usage

SAMPLE_EVERY_S = 0.25
TAIL_CHARACTERS = 600


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
        tree = _Tree(process.pid)
        try:
            while process.poll() is None:
                usage.append(tree.sample())
                if time.monotonic() - started_at > limit_s:
                    raise CandidateError(f"not done after {limit_s:.0f} s: {_tail(output)}")
                time.sleep(SAMPLE_EVERY_S)
        finally:
            tree.end()
            process.wait()
    if process.returncode:
        raise CandidateError(f"exit code {process.returncode}: {_tail(output)}")
    return Watched(started_at, usage)


class _Tree:
    """A process and its descendants; those that have ended keep counting."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._seen: dict[int, psutil.Process] = {}
        self._cpu_s: dict[int, float] = {}
        self._peak_bytes = 0

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

    def end(self) -> None:
        """Ends what is left, children first."""
        for process in reversed(self._seen.values()):
            try:
                process.kill()
            except psutil.Error:
                continue


def _peak_bytes(process_id: int) -> int:
    for line in Path(f"/proc/{process_id}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return 1024 * int(line.split()[1])
    return 0  # it has ended and is waited for


def _tail(output: Path) -> str:
    return " ".join(output.read_text(errors="replace").split())[-TAIL_CHARACTERS:]
