"""How many processor cores a process may use: containers, Slurm and taskset leave it fewer."""

import os

import psutil


def allowed_cores() -> int:
    """Returns the logical cores that processes like this one may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux; others do not restrict them
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def usable_cores() -> int:
    """Returns the same with twins of one physical core counted once, as torch has threads."""
    allowed = allowed_cores()
    return min(allowed, psutil.cpu_count(logical=False) or allowed)
