"""Starts several workers of the same command on this machine and waits for them."""

import os
import signal
import socket
import subprocess
import sys
from types import FrameType

import psutil

from dragoman.console import say


def launch_local(arguments: list[str], workers: int) -> int:
    """Run `dragoman ARGUMENTS` as `workers` ranks; the exit code of the first that failed, or 0.

    A first Ctrl-C or SIGTERM lets the workers finish their step and save; a second ends them.
    """
    command = [sys.executable, "-m", "dragoman", *arguments]
    agent = subprocess.Popen(
        [sys.executable, "-m", "dragoman.cluster.agent", str(workers), *command],
        stdin=subprocess.PIPE,
        env=_environment(workers),
        start_new_session=True,  # Ctrl-C reaches this process alone, which passes it on in order
    )
    asked = 0

    def pass_on(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            say("stopping: the workers finish their step and save; once more ends them at once")
            agent.terminate()
        else:
            os.killpg(agent.pid, signal.SIGKILL)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return agent.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if agent.stdin:
            agent.stdin.close()


def _environment(workers: int) -> dict[str, str]:
    cores = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    defaults = {
        "OMP_NUM_THREADS": str(max(1, cores // workers)),
        "GLOO_SOCKET_IFNAME": _loopback_interface(),  # workers of one machine need no other
    }
    return defaults | dict(os.environ)


def _loopback_interface() -> str:
    for name, addresses in psutil.net_if_addrs().items():
        if any(a.family == socket.AF_INET and a.address == "127.0.0.1" for a in addresses):
            return name
    return "lo"
