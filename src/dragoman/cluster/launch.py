"""Starts the agent of a run on this machine and owns what it starts.

Ctrl-C, a rank that fails and a run that is finished all end with no process left behind.
"""

import logging
import os
import secrets
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import IO

import psutil

from dragoman.checkpoints.run_id import run_id
from dragoman.cluster.job import Job, stop_line
from dragoman.cluster.probe import cuda_devices
from dragoman.cluster.worker_log import WorkerLog
from dragoman.cluster.zygote import signal_name
from dragoman.cores import allowed_cores
from dragoman.distributed.stop_reason import reason_of_signal, stop_signals
from dragoman.errors import RunError, UserError
from dragoman.rundir import RunDir
from dragoman.training.manifest import START_COMMAND, START_FOLDER, START_OPTIONS

logger = logging.getLogger(__name__)

AGENT = "dragoman.cluster.agent"
POLL_EVERY_S = 0.1
KILL_S = 5.0
"""How long an agent may take to end when it is killed."""
RESUME_HINT = "the same command resumes from the newest checkpoint"


class Orders:
    """What the user has asked for with Ctrl-C or another signal: once to stop, again to kill."""

    def __init__(self) -> None:
        self.asked = 0
        self.reason = ""
        """Why the workers are to stop, for people: what the first request was."""
        self._passed_on = 0

    def new(self) -> Iterator[str]:
        """Yields the orders that have not been passed on yet."""
        while self._passed_on < self.asked:
            self._passed_on += 1
            yield stop_line(self.reason) if self._passed_on == 1 else "kill"

    def receive(self, number: int, frame: FrameType | None) -> None:
        self.ask(reason_of_signal(number))

    def ask(self, reason: str) -> None:
        """Counts one more request; safe from any thread or signal handler."""
        self.reason = self.reason or reason
        self.asked += 1
        if self.asked == 1:
            logger.info(
                "stopping: the workers finish their step and save; interrupt again to kill them"
            )


@contextmanager
def orders() -> Iterator[Orders]:
    """While open, signals to stop are orders; afterwards the old handlers are back."""
    given = Orders()
    before = {n: signal.signal(n, given.receive) for n in stop_signals()}
    try:
        yield given
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def launch_local(
    arguments: list[str],
    workers: int,
    given: Orders,
    log: WorkerLog | None = None,
    variables: Mapping[str, str] = MappingProxyType({}),
    run: RunDir | None = None,
) -> int:
    """Runs `dragoman ARGUMENTS` as `workers` ranks.

    Returns the exit code of the first rank that failed, or 0.

    A first order lets the workers finish their step and save; a second kills them. Their output
    goes to `log` if given, else to the output of this process. `variables` are added to their
    environment. Their agent keeps a log in `run`.
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
    send_line(agent.stdin, local_job(arguments, workers, variables, run).to_line())
    with agent, log.following(agent) if log else nullcontext():
        while (code := agent.poll()) is None:
            with suppress(subprocess.TimeoutExpired):
                agent.wait(POLL_EVERY_S)
            for order in given.new():
                send_line(agent.stdin, order)
                if order == "kill":
                    with suppress(subprocess.TimeoutExpired):
                        agent.wait(KILL_S)
                    agent.kill()  # a stopped process does not read its input
        with suppress(OSError):  # an order that came too late is still in the buffer
            agent.stdin.close()
    if code < 0:
        raise RunError(
            f"the agent of the workers was killed by {signal_name(-code)}; {RESUME_HINT}"
        )
    return code


def check_workers(workers: int, device: str) -> None:
    """Refuses more workers than this machine has devices for."""
    devices = cuda_devices() if device != "cpu" else 0
    check_devices(workers, devices, allowed_cores(), "this machine")


def check_devices(workers: int, cuda: int, cores: int, where: str) -> None:
    """Refuses more workers than CUDA devices, or than cores if there are no devices.

    Such workers take turns, so nothing gets faster, and enough of them bring down a machine with
    all that runs on it.
    """
    has = f"{cuda} CUDA device(s)" if cuda else f"{cores} processor core(s)"
    if workers > (cuda or cores):
        raise UserError(
            f"{where}: {workers} workers requested, but only {has} found; start fewer, or add "
            "--oversubscribe to let them take turns"
        )


def local_job(
    arguments: list[str],
    workers: int,
    variables: Mapping[str, str] = MappingProxyType({}),
    run: RunDir | None = None,
) -> Job:
    return Job(
        arguments,
        workers,
        secret=new_secret(),
        # Workers of one machine need no other interface.
        environment={"GLOO_SOCKET_IFNAME": _loopback_interface(), **user_set(), **variables},
        run=str(run.root) if run else "",
        run_id=run_id(run) if run else "",
    )


def start_variables(
    hosts: str, workers: int | None, oversubscribe: bool, command: Sequence[str] = ()
) -> dict[str, str]:
    """Returns what the workers record of how they were started: where the same command goes on.

    `command` is what was typed, if anything was.
    """
    options = ["--hosts", hosts] if hosts else []
    options += ["--workers", str(workers)] if workers else []
    options += ["--oversubscribe"] if oversubscribe else []
    return {
        START_OPTIONS: shlex.join(options),
        START_FOLDER: str(Path.cwd()),
        START_COMMAND: shlex.join(command),
    }


def new_secret() -> str:
    return secrets.token_hex(32)


def send_line(stream: IO[str], line: str) -> None:
    with suppress(OSError, ValueError):  # it has ended, which is detected elsewhere
        stream.write(f"{line}\n")
        stream.flush()


def user_set() -> dict[str, str]:
    """Returns those of the variables we set for workers that the user has already set."""
    names = ("GLOO_SOCKET_IFNAME", "OMP_NUM_THREADS")
    return {name: os.environ[name] for name in names if name in os.environ}


def _loopback_interface() -> str:
    for name, addresses in psutil.net_if_addrs().items():
        if any(a.family == socket.AF_INET and a.address == "127.0.0.1" for a in addresses):
            return name
    return "lo"
