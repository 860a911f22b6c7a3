"""Starts the agent of a run on this machine and owns what it starts.

Ctrl-C, a rank that fails and a run that is finished all end with no process left behind.
"""

import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from types import FrameType
from typing import IO

import psutil

from dragoman.cluster.job import Job
from dragoman.cluster.probe import cuda_devices
from dragoman.cluster.worker_log import WorkerLog
from dragoman.cluster.zygote import signal_name
from dragoman.errors import RunError, UserError

logger = logging.getLogger(__name__)

AGENT = "dragoman.cluster.agent"
POLL_EVERY_S = 0.1
KILL_S = 5.0
"""What an agent gets to end at once."""
RESUME_HINT = "the same command goes on from the newest checkpoint"


class Orders:
    """What a person has asked for with Ctrl-C or SIGTERM: once to stop, again to kill."""

    def __init__(self) -> None:
        self.asked = 0
        self._passed_on = 0

    def new(self) -> Iterator[str]:
        """Those that have not been passed on yet."""
        while self._passed_on < self.asked:
            self._passed_on += 1
            yield "stop" if self._passed_on == 1 else "kill"

    def receive(self, number: int, frame: FrameType | None) -> None:
        self.ask()

    def ask(self) -> None:
        """From any thread or signal handler."""
        self.asked += 1
        if self.asked == 1:
            logger.info(
                "stopping: the workers finish their step and save; once more ends them at once"
            )


@contextmanager
def orders() -> Iterator[Orders]:
    """While open, SIGINT and SIGTERM are orders; afterwards they mean what they meant before."""
    given = Orders()
    before = {n: signal.signal(n, given.receive) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield given
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def launch_local(
    arguments: list[str], workers: int, given: Orders, log: WorkerLog | None = None
) -> int:
    """Run `dragoman ARGUMENTS` as `workers` ranks; the exit code of the first that failed, or 0.

    A first order lets the workers finish their step and save; a second ends them. What they print
    goes to `log`; without one, to where this process prints.
    """
    output = subprocess.PIPE if log else None
    agent = subprocess.Popen(
        [sys.executable, "-m", AGENT],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=output,
        text=True,
        errors="replace",
        start_new_session=True,  # Ctrl-C reaches this process alone, which passes it on in order
    )
    assert agent.stdin
    send_line(agent.stdin, local_job(arguments, workers).to_line())
    with agent, log.following(agent) if log else nullcontext():
        while (code := agent.poll()) is None:
            with suppress(subprocess.TimeoutExpired):
                agent.wait(POLL_EVERY_S)
            for order in given.new():
                send_line(agent.stdin, order)
                if order == "kill":
                    with suppress(subprocess.TimeoutExpired):
                        agent.wait(KILL_S)
                    agent.kill()  # where it has been stopped, it does not hear
        with suppress(OSError):  # an order that came too late is still in the buffer
            agent.stdin.close()
    if code < 0:
        raise RunError(f"the agent of the workers was ended by {signal_name(-code)}; {RESUME_HINT}")
    return code


def check_workers(workers: int, device: str) -> None:
    """Refuse more workers than this machine has devices for."""
    devices = cuda_devices() if device != "cpu" else 0
    check_devices(workers, devices, os.cpu_count() or 1, "this machine")


def check_devices(workers: int, cuda: int, cores: int, where: str) -> None:
    """Refuse more workers than CUDA devices, or than cores where there are none.

    Such workers take turns, so nothing gets faster, and enough of them bring a machine down with
    all that runs on it.
    """
    has = f"{cuda} CUDA device(s)" if cuda else f"{cores} processor core(s)"
    if workers > (cuda or cores):
        raise UserError(
            f"{where}: {workers} workers are asked for, and there are {has}; start fewer, or add "
            "--oversubscribe to let them take turns"
        )


def local_job(arguments: list[str], workers: int) -> Job:
    return Job(
        arguments,
        workers,
        secret=new_secret(),
        # Workers of one machine need no other interface.
        environment={"GLOO_SOCKET_IFNAME": _loopback_interface()} | user_set(),
    )


def new_secret() -> str:
    return secrets.token_hex(32)


def send_line(stream: IO[str], line: str) -> None:
    with suppress(OSError, ValueError):  # it has ended, which is found out elsewhere
        stream.write(f"{line}\n")
        stream.flush()


def user_set() -> dict[str, str]:
    """Of the variables that we choose for workers, those that the user has chosen already."""
    names = ("GLOO_SOCKET_IFNAME", "OMP_NUM_THREADS")
    return {name: os.environ[name] for name in names if name in os.environ}


def _loopback_interface() -> str:
    for name, addresses in psutil.net_if_addrs().items():
        if any(a.family == socket.AF_INET and a.address == "127.0.0.1" for a in addresses):
            return name
    return "lo"
