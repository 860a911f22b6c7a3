"""Starts a run on several hosts: an agent on each over ssh, watched until all have ended.

Agents are kept from one start to the next, with torch imported already, so a run that has lost a
rank restarts at once. The ranks meet in a store on this machine's loopback, which each host reaches
through a port on its own loopback that ssh forwards: nothing of it listens on a network.
"""

import dataclasses
import os
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from dragoman.cluster.hosts import Cluster, Host
from dragoman.cluster.job import Job, stop_line
from dragoman.cluster.launch import AGENT, POLL_EVERY_S, RESUME_HINT, Orders, send_line
from dragoman.cluster.ssh import (
    SSH_FAILED,
    failure,
    forwarded_port,
    forwarding_to,
    read_message,
    run_module,
    ssh_command,
)
from dragoman.cluster.zygote import Zygote, ignore_signals
from dragoman.errors import DragomanError, RunError, UserError

ALIVE_EVERY_S = 1.0
SILENCE_S = 10.0
"""A host that is silent for longer is lost: its agent sends a sign of life once a second."""
FAREWELL_S = 20.0
"""How long the other hosts may take to end and to report who was lost, after one has failed."""
START_S = 120.0
"""How long an agent may take to its first message: Python starts slowly from a cold disk."""

Receive = Callable[[Host, dict[str, Any]], None]


@dataclass(frozen=True)
class Outcome:
    code: int
    """Exit code of the first host that failed, or 0."""
    lost: frozenset[str] = frozenset()
    """Hosts that were silent for too long."""
    error: DragomanError | None = None
    """What is to be reported beyond what the workers have reported themselves."""


@dataclass
class Member:
    """One host's agent: its process here, and what was received from it."""

    host: Host
    process: subprocess.Popen[str]
    heard_at: float
    has_reported: bool = False
    store_port: int | None = None
    """Port on the host that is forwarded to the store; None until ssh has reported it."""
    start: str = ""
    """Name of the start that its current job belongs to."""
    ranks: Sequence[int] = ()
    """Ranks of its current job."""
    code: int | None = None
    """Exit code of its current job; None while it runs."""
    error: DragomanError | None = None
    complaints: deque[str] = field(default_factory=lambda: deque(maxlen=50))
    """The last lines of its standard error: those of ssh, or of an agent that could not start."""

    @property
    def has_left(self) -> bool:
        return self.process.poll() is not None

    @property
    def has_ended(self) -> bool:
        return self.code is not None or self.has_left

    @property
    def has_failed(self) -> bool:
        return bool(self.code) or (self.code is None and self.has_left)

    @property
    def silent_s(self) -> float:
        return time.monotonic() - self.heard_at

    @property
    def is_lost(self) -> bool:
        """Returns whether it has ended without an exit code, or has been silent for too long."""
        if self.has_left:
            return self.process.returncode == SSH_FAILED
        return self.silent_s > (SILENCE_S if self.has_reported else START_S)

    def begin(self, job: Job) -> None:
        assert self.store_port
        self.start = job.start
        self.ranks = range(job.first_rank, job.first_rank + job.workers)
        self.send(dataclasses.replace(job, store_port=self.store_port).to_line())

    def send(self, line: str) -> None:
        assert self.process.stdin
        send_line(self.process.stdin, line)

    def end(self) -> None:
        if not self.has_left:
            self.send("kill")
        with suppress(OSError, ValueError):
            if self.process.stdin:
                self.process.stdin.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            if stream:
                with suppress(OSError, ValueError):
                    stream.close()


class Store:
    """The store where ranks meet, on this machine's loopback; create it in the main thread."""

    def __init__(self) -> None:
        self.is_alive = True
        self._keeper = Zygote(os.environ, self._receive)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self.port: int = listening.getsockname()[1]
            self._keeper.fork_store(listening)

    def close(self) -> None:
        self._keeper.close()

    def _receive(self, message: dict[str, Any] | None) -> None:
        self.is_alive = self.is_alive and message is not None and "ended" not in message


class Agents:
    """The agents of a run, by the names of their hosts, and the store where ranks meet."""

    def __init__(self, receive: Receive) -> None:
        """`receive` is called with the messages that are not about a start itself."""
        self._store, self._receive_of_run, self._receive = Store(), receive, receive
        self._members: dict[str, Member] = {}
        self._ended = threading.Event()
        self._heartbeat = threading.Thread(target=self._send_heartbeats, name="alive", daemon=True)
        self._heartbeat.start()

    def run(
        self,
        cluster: Cluster,
        jobs: Sequence[Job],
        given: Orders,
        wants_pause: Callable[[], bool] = lambda: False,
        receive: Receive | None = None,
    ) -> Outcome:
        """Runs one job on each host until all have ended or one is lost.

        When `wants_pause`, the workers are asked to save and stop. `receive` is called with the
        messages of this job, in place of that of the run. Afterwards only agents that are ready
        for another job are left.
        """
        self._receive = receive or self._receive_of_run
        if not self._store.is_alive:  # ports forwarded to it lead nowhere now
            self._drop(self._members)
            self._store.close()
            self._store = Store()
        wanted = {host.name for host in cluster.hosts}
        self._drop(
            name
            for name, member in self._members.items()
            if name not in wanted or member.has_left or member.is_lost
        )
        for host in cluster.hosts:
            if host.name not in self._members:
                self._members[host.name] = self._start(cluster, host)
        members = [self._members[host.name] for host in cluster.hosts]
        try:
            return _meet(members, jobs, given) or _watch(members, given, wants_pause)
        finally:
            self._drop(m.host.name for m in members if m.code is None or m.is_lost or m.has_left)

    def warm_up(self, cluster: Cluster, host: Host, job: Job) -> None:
        """Starts an agent while a run continues, so that the host can join without delay later.

        From any thread.
        """
        member = self._members[host.name] = self._start(cluster, host)
        nobody = Orders()
        outcome = _meet([member], [job], nobody) or _watch([member], nobody, lambda: False)
        if outcome.code:
            self._drop([host.name])
            raise outcome.error or RunError(f"{host.name}: cannot start workers")

    def close(self) -> None:
        self._drop(self._members)
        self._ended.set()
        self._heartbeat.join()
        self._store.close()

    def _drop(self, names: Iterable[str]) -> None:
        dropped = [self._members.pop(name) for name in tuple(names) if name in self._members]
        threads = [threading.Thread(target=member.end) for member in dropped]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _start(self, cluster: Cluster, host: Host) -> Member:
        forward = forwarding_to(self._store.port)
        process = subprocess.Popen(
            ssh_command(cluster, host, run_module(host, AGENT), forward),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            # Ctrl-C, and SIGTERM to all processes at once as job systems send it, are for this
            # process, which passes them on; ssh keeps ignoring what it was started to ignore.
            start_new_session=True,
            preexec_fn=ignore_signals,  # noqa: PLW1509 - it takes no lock
        )
        member = Member(host, process, time.monotonic())
        for work in (self._read_messages, self._read_complaints):
            threading.Thread(
                target=work, args=(member,), name=f"from {host.name}", daemon=True
            ).start()
        return member

    def _read_messages(self, member: Member) -> None:
        assert member.process.stdout
        with suppress(ValueError):  # closed while being read: nobody needs it any more
            for line in member.process.stdout:
                member.heard_at = time.monotonic()
                match read_message(line):
                    case None:
                        continue
                    case {"error": str(sentence)}:
                        member.error = UserError(f"{member.host.name}: {sentence}")
                    case {"ended": int(code), "start": str(start)}:
                        if start == member.start:
                            member.code = code
                    case message:
                        self._receive(member.host, message)
                member.has_reported = True

    def _read_complaints(self, member: Member) -> None:
        assert member.process.stderr
        with suppress(ValueError):
            for line in member.process.stderr:
                member.store_port = member.store_port or forwarded_port(line)
                member.complaints.append(line)

    def _send_heartbeats(self) -> None:
        """Keeps agents alive: without this, as after a network cut, they end their workers."""
        while not self._ended.wait(ALIVE_EVERY_S):
            for member in tuple(self._members.values()):
                member.send("alive")


@contextmanager
def agents_of_a_run(receive: Receive) -> Iterator[Agents]:
    """Yields agents with a store on this machine's loopback, and ends them all afterwards."""
    agents = Agents(receive)
    try:
        yield agents
    finally:
        agents.close()


def _meet(members: Sequence[Member], jobs: Sequence[Job], given: Orders) -> Outcome | None:
    """Gives each agent its job once its host can reach the store; returns how it failed, if so."""
    for member in members:
        member.code, member.error = None, None
    for member, job in zip(members, jobs, strict=True):
        while member.store_port is None:
            if given.asked:
                return Outcome(0)
            if ended := _ended(members):
                return ended
            _attend(members, given)
        if given.asked:  # it was passed on to agents that have nothing to stop yet
            return Outcome(0)
        member.begin(job)
    return None


def _watch(members: Sequence[Member], given: Orders, wants_pause: Callable[[], bool]) -> Outcome:
    is_pausing = False
    while not (ended := _ended(members)):
        _attend(members, given)
        if not is_pausing and wants_pause():
            is_pausing = True
            for member in members:
                member.send(stop_line("paused to take in a host that is back"))
    if ended.code == 0:
        return ended
    # The others may report more about it, and end by themselves.
    for member in members:
        member.send("end")
    deadline = time.monotonic() + FAREWELL_S
    while time.monotonic() < deadline and not all(m.has_ended or m.is_lost for m in members):
        _attend(members, given)
    lost = frozenset(member.host.name for member in members if member.is_lost)
    return dataclasses.replace(ended, lost=lost)


def _attend(members: Sequence[Member], given: Orders) -> None:
    time.sleep(POLL_EVERY_S)
    for order in given.new():
        for member in members:
            member.send(order)


def _ended(members: Sequence[Member]) -> Outcome | None:
    """Returns how the start ended, once all hosts have or one failed or is lost; else None."""
    for member in members:
        if member.has_failed or member.is_lost:
            lost = frozenset([member.host.name] if member.is_lost else [])
            error = _explanation(member)
            return Outcome(error.exit_code if error else member.code or 1, lost, error)
    return Outcome(0) if all(member.has_ended for member in members) else None


def _explanation(member: Member) -> DragomanError | None:
    """Returns why the host failed; None if its workers have reported that themselves."""
    name = member.host.name
    if member.error:
        return member.error
    if member.code:
        return None
    if not member.has_left:
        ranks = ", ".join(map(str, member.ranks)) or "none yet"
        return RunError(
            f"{name} has not been heard from for {member.silent_s:.0f} s (ranks there: {ranks}); "
            f"it or its network is down; {RESUME_HINT}"
        )
    if not member.has_reported:
        return failure(member.host, member.process.returncode, "".join(member.complaints))
    if member.process.returncode == SSH_FAILED:
        return RunError(
            f"{name}: the connection broke: the host or its network went down, or its agent was "
            f"killed; {RESUME_HINT}"
        )
    return RunError(f"{name}: its agent was killed; {RESUME_HINT}")
