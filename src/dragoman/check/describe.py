"""What a host is and what else happens on it, beside what the probe before a training reports."""

import os
import platform
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from dragoman.check.gpu_health import gpus
from dragoman.cluster import probe
from dragoman.rundir import RunDir, read_bounded

LOAD_OVER_S = 0.6
MOST_PROCESSES = 3
LEAST_CORES = 0.1
"""A process that keeps less of a core busy is not worth naming."""
MOST_CONFIG_BYTES = 1_000_000
_OWN = ("dragoman.check", "dragoman check")
RUNS = "runs"
"""Folder of runs within the working folder."""


def description(question: dict[str, Any]) -> dict[str, Any]:
    """Returns the probe's facts, and what only a check asks for."""
    facts = probe.facts(question)
    folder = Path(facts["folder"])
    runs = storage_of(folder)
    run = RunDir(folder / RUNS / question["run"]) if question["run"] else None
    return {
        "facts": facts,
        "links": announced_links(),
        "processor": processor_name(),
        "memory_bytes": psutil.virtual_memory().total,
        "free_bytes": psutil.disk_usage(str(runs)).free,
        "config": _config_of(run) if run else None,
        **gpus(),
    }


def storage_of(folder: Path) -> Path:
    """Returns where checkpoints will be: the folder of runs may be a disk of its own."""
    return folder / RUNS if (folder / RUNS).is_dir() else folder


def announced_links() -> dict[str, float]:
    """Returns the bytes per second that each real interface announces.

    Virtual ones, of containers and namespaces, announce 10 Gbit/s whatever carries them.
    """
    return {
        name: state.speed * 1e6 / 8
        for name, state in psutil.net_if_stats().items()
        if state.isup and state.speed > 0 and Path("/sys/class/net", name, "device").exists()
    }


def processor_name() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def load(interface: str, over_s: float = LOAD_OVER_S) -> dict[str, Any]:
    """Returns what others do on this host in the next moments, in which we do nothing."""
    psutil.cpu_times_percent()
    used_before, bytes_before = _seconds_used(), _bytes_of(interface)
    begun = time.monotonic()
    time.sleep(over_s)
    passed_s = time.monotonic() - begun
    shares = psutil.cpu_times_percent()
    used, bytes_now = _seconds_used(), _bytes_of(interface)
    cores = {
        key: (seconds - used_before.get(key, seconds)) / passed_s for key, seconds in used.items()
    }
    busiest = sorted(cores, key=lambda key: -cores[key])[:MOST_PROCESSES]
    return {
        # Processes of a container's neighbors are not listed, and yet take cores.
        "busy_cores": max(sum(cores.values()), 0.0),
        "processor_share": 1.0 - shares.idle / 100 - getattr(shares, "iowait", 0.0) / 100,
        "steal_share": getattr(shares, "steal", 0.0) / 100,
        "processes": [
            {"pid": pid, "name": name, "cores": round(cores[pid, name], 2)}
            for pid, name in busiest
            if cores[pid, name] >= LEAST_CORES
        ],
        "sent_bytes_per_s": (bytes_now[0] - bytes_before[0]) / passed_s,
        "received_bytes_per_s": (bytes_now[1] - bytes_before[1]) / passed_s,
    }


def _seconds_used() -> dict[tuple[int, str], float]:
    """Returns processor seconds by (pid, name) of all processes but those of checks."""
    used = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            times = process.cpu_times()
            if times.user + times.system > 0 and not _is_own(process):
                used[process.pid, process.name()] = times.user + times.system
    return used


def _is_own(process: psutil.Process) -> bool:
    words = " ".join(process.cmdline())
    return process.pid == os.getpid() or any(own in words for own in _OWN)


def _bytes_of(interface: str) -> tuple[int, int]:
    counters = psutil.net_io_counters(pernic=True, nowrap=False).get(interface)
    return (counters.bytes_sent, counters.bytes_recv) if counters else (0, 0)


def _config_of(run: RunDir) -> str | None:
    """Returns the recipe of a run that this host already has under the name."""
    try:
        return read_bounded(run.config, MOST_CONFIG_BYTES).decode()
    except (OSError, UnicodeDecodeError):
        return None
