"""Starts the agents of a run, on this machine or over ssh, and owns what they start.

Ctrl-C, a rank that fails and a run that is finished all end with no process left behind.
"""

import dataclasses
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import IO, Any

import psutil

from dragoman.cluster.hosts import Cluster, Host
from dragoman.cluster.job import Job
from dragoman.cluster.ssh import SSH_FAILED, failure, read_message, run_module, ssh_command
from dragoman.console import say
from dragoman.errors import DragomanError, RunError, UserError

AGENT = "dragoman.cluster.agent"
ALIVE_EVERY_S = 1.0
SILENCE_S = 10.0
"""A host that says nothing for so long is lost: its agent speaks once a second."""
FAREWELL_S = 20.0
"""What the other hosts get to end by themselves, and to say who was lost, after one has failed."""
START_S = 120.0
"""Until an agent speaks for the first time: it imports torch, on a cold disk maybe."""


def launch_local(arguments: list[str], workers: int) -> int:
    """Run `dragoman ARGUMENTS` as `workers` ranks; the exit code of the first that failed, or 0.

    A first Ctrl-C or SIGTERM lets the workers finish their step and save; a second ends them.
    """
    agent = subprocess.Popen(
        [sys.executable, "-m", AGENT],
        stdin=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C reaches this process alone, which passes it on in order
    )
    assert agent.stdin
    _tell(agent.stdin, local_job(arguments, workers).to_line())

    def pass_on(asked: int) -> None:
        assert agent.stdin
        _tell(agent.stdin, "stop\n" if asked == 1 else "kill\n")

    with agent, _asked_to_stop(pass_on):
        return agent.wait()


def local_job(arguments: list[str], workers: int) -> Job:
    return Job(
        command=[sys.executable, "-m", "dragoman", *arguments],
        workers=workers,
        identity=secrets.token_hex(8),
        # Workers of one machine need no other interface.
        environment={"GLOO_SOCKET_IFNAME": _loopback_interface()} | user_set(),
    )


@dataclass
class Member:
    """One host of a start: its agent's process, and what was heard from it."""

    host: Host
    process: subprocess.Popen[str]
    heard_at: float
    has_spoken: bool = False
    ranks: Sequence[int] = ()
    error: DragomanError | None = None
    complaints: deque[str] = field(default_factory=lambda: deque(maxlen=50))
    """The last lines of its standard error: ssh's own, and of an agent that could not start."""

    def tell(self, line: str) -> None:
        assert self.process.stdin
        _tell(self.process.stdin, line)

    def ended(self) -> bool:
        return self.process.poll() is not None

    def silent_s(self) -> float:
        return time.monotonic() - self.heard_at


def launch_hosts(
    cluster: Cluster, jobs: Sequence[Job], receive: Callable[[Host, dict[str, Any]], None]
) -> int:
    """Run one job on each host; the exit code of the first that failed, or 0.

    The first job's host tells where to meet before the others start. `receive` gets the messages
    that are not about the start itself: lines of output and pieces of records.
    """
    members: list[Member] = []
    try:
        with _asked_to_stop(lambda asked: _stop(members, asked)), _kept_alive(members):
            leader = _start(cluster, cluster.hosts[0], jobs[0])
            members.append(leader)
            meeting: list[Any] = []
            _listen(leader, receive, meeting)
            if len(jobs) > 1:
                _wait_for(leader, lambda: bool(meeting))
                for host, job in zip(cluster.hosts[1:], jobs[1:], strict=True):
                    at = (str(meeting[0]), int(meeting[1]))
                    member = _start(cluster, host, _meeting_at(job, at))
                    members.append(member)
                    _listen(member, receive, [])
            return _watch(members)
    finally:
        for member in members:
            if not member.ended():
                member.tell("kill\n")
        for member in members:
            _end(member.process)


def _watch(members: list[Member]) -> int:
    """Until all have ended, or one was lost."""
    first: Member | None = None
    deadline = float("inf")
    while not all(member.ended() for member in members):
        time.sleep(0.1)
        if first is None:
            first = next((m for m in members if m.ended() and m.process.returncode), None)
            if first is None:
                _check_silence(members)
            else:
                deadline = time.monotonic() + FAREWELL_S
        elif time.monotonic() > deadline or _are_silent(members):
            break
    failed = first or next((m for m in members if m.process.returncode), None)
    if failed is None:
        return 0
    if failed.error:
        raise failed.error
    if not failed.has_spoken:
        raise failure(failed.host, failed.process.returncode, "".join(failed.complaints))
    if failed.process.returncode == SSH_FAILED:
        raise RunError(
            f"{failed.host.name}: the connection to it broke; it went down, or its network did, "
            "and the same command goes on from the newest checkpoint"
        )
    return failed.process.returncode


def _are_silent(members: list[Member]) -> bool:
    return all(member.ended() or member.silent_s() > SILENCE_S for member in members)


def _check_silence(members: list[Member]) -> None:
    for member in members:
        allowed_s = SILENCE_S if member.has_spoken else START_S
        if not member.ended() and member.silent_s() > allowed_s:
            ranks = ", ".join(map(str, member.ranks)) or "none yet"
            raise RunError(
                f"{member.host.name} has not been heard from for {member.silent_s():.0f} s "
                f"(ranks there: {ranks}); it is down, or the network to it is, and the same "
                "command goes on from the newest checkpoint"
            )


def _start(cluster: Cluster, host: Host, job: Job) -> Member:
    process = subprocess.Popen(
        ssh_command(cluster, host, run_module(host, AGENT)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,  # Ctrl-C reaches this process alone, which passes it on in order
    )
    member = Member(host, process, time.monotonic())
    member.tell(job.to_line())
    return member


def _listen(
    member: Member, receive: Callable[[Host, dict[str, Any]], None], meeting: list[Any]
) -> None:
    def read() -> None:
        assert member.process.stdout
        for line in member.process.stdout:
            member.heard_at = time.monotonic()
            message = read_message(line)
            if message is None:
                continue
            member.has_spoken = True
            if "error" in message:
                member.error = UserError(f"{member.host.name}: {message['error']}")
            elif "meeting" in message:
                meeting[:] = message["meeting"]
            elif "ranks" in message:
                member.ranks = message["ranks"]
            else:
                receive(member.host, message)

    def read_complaints() -> None:
        assert member.process.stderr
        member.complaints.extend(member.process.stderr)

    for work in (read, read_complaints):
        threading.Thread(target=work, name=f"from {member.host.name}", daemon=True).start()


def _wait_for(member: Member, condition: Callable[[], bool]) -> None:
    while not condition():
        if member.ended() or member.error:
            _watch([member])
            raise RunError(f"{member.host.name}: ended before the others could meet there")
        _check_silence([member])
        time.sleep(0.05)


def _meeting_at(job: Job, meeting: tuple[str, int]) -> Job:
    return dataclasses.replace(job, meeting=meeting)


def _stop(members: list[Member], asked: int) -> None:
    for member in members:
        member.tell("stop\n" if asked == 1 else "kill\n")


@contextmanager
def _kept_alive(members: list[Member]) -> Iterator[None]:
    """An agent that hears nothing ends its workers, so that a cut network leaves none behind."""
    ended = threading.Event()

    def speak() -> None:
        while not ended.wait(ALIVE_EVERY_S):
            for member in members:
                member.tell("alive\n")

    thread = threading.Thread(target=speak, name="alive", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def _asked_to_stop(act: Callable[[int], None]) -> Iterator[None]:
    """While open, SIGINT and SIGTERM call `act` with how often they came."""
    asked = 0

    def receive(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            say("stopping: the workers finish their step and save; once more ends them at once")
        act(asked)

    before = {number: signal.signal(number, receive) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tell(stream: IO[str], line: str) -> None:
    with suppress(OSError, ValueError):  # it has ended, which is found out elsewhere
        stream.write(line)
        stream.flush()


def _end(process: subprocess.Popen[str]) -> None:
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            with suppress(OSError, ValueError):
                stream.close()


def user_set() -> dict[str, str]:
    """Of the variables that we choose for workers, those that the user has chosen already."""
    names = ("GLOO_SOCKET_IFNAME", "OMP_NUM_THREADS")
    return {name: os.environ[name] for name in names if name in os.environ}


def _loopback_interface() -> str:
    for name, addresses in psutil.net_if_addrs().items():
        if any(a.family == socket.AF_INET and a.address == "127.0.0.1" for a in addresses):
            return name
    return "lo"
