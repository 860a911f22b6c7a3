"""One start of a run on several hosts: an agent on each over ssh, watched until all have ended."""

import dataclasses
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from dragoman.cluster.hosts import Cluster, Host
from dragoman.cluster.job import Job
from dragoman.cluster.launch import AGENT, LOOK_EVERY_S, Orders, tell
from dragoman.cluster.ssh import SSH_FAILED, failure, read_message, run_module, ssh_command
from dragoman.errors import DragomanError, RunError, UserError

ALIVE_EVERY_S = 1.0
SILENCE_S = 10.0
"""A host that says nothing for so long is lost: its agent speaks once a second."""
FAREWELL_S = 20.0
"""What the other hosts get to end by themselves, and to say who was lost, after one has failed."""
START_S = 120.0
"""Until an agent speaks for the first time: it imports torch, on a cold disk maybe."""

GOES_ON = "the same command goes on from the newest checkpoint"

Receive = Callable[[Host, dict[str, Any]], None]


@dataclass(frozen=True)
class Outcome:
    code: int
    """Of the first host that failed, or 0."""
    lost: frozenset[str] = frozenset()
    """Hosts that could not be heard any more."""
    error: DragomanError | None = None
    """What there is to say beyond what the workers have said themselves."""


@dataclass
class Member:
    """One host of a start: its agent's process, and what was heard from it."""

    host: Host
    process: subprocess.Popen[str]
    heard_at: float
    has_spoken: bool = False
    meeting: tuple[str, int] | None = None
    ranks: Sequence[int] = ()
    error: DragomanError | None = None
    complaints: deque[str] = field(default_factory=lambda: deque(maxlen=50))
    """The last lines of its standard error: ssh's own, and of an agent that could not start."""

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    @property
    def has_failed(self) -> bool:
        return self.process.poll() not in (None, 0)

    @property
    def silent_s(self) -> float:
        return time.monotonic() - self.heard_at

    @property
    def is_lost(self) -> bool:
        """It is gone without a word, or says nothing any more."""
        if self.has_ended:
            return self.process.returncode == SSH_FAILED
        return self.silent_s > (SILENCE_S if self.has_spoken else START_S)

    def tell(self, line: str) -> None:
        assert self.process.stdin
        tell(self.process.stdin, line)


def supervise(
    cluster: Cluster,
    jobs: Sequence[Job],
    receive: Receive,
    given: Orders,
    wants_pause: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Run one job on each host until all have ended or one is lost; then none is left running.

    All agents start side by side, since each has torch to import; the first host then tells where
    to meet, and the others get their jobs. `receive` gets the messages that are not about the start
    itself. When `wants_pause`, the workers are asked to save and stop.
    """
    members: list[Member] = []
    try:
        with _kept_alive(members):
            for host in cluster.hosts:
                members.append(_start(cluster, host, receive))
            members[0].tell(jobs[0].to_line())
            while len(members) > 1 and members[0].meeting is None:
                if ended := _ended(members):
                    return ended
                _attend(members, given)
            for member, job in zip(members[1:], jobs[1:], strict=True):
                assert members[0].meeting
                member.tell(dataclasses.replace(job, meeting=members[0].meeting).to_line())
            return _watch(members, given, wants_pause)
    finally:
        for member in members:
            if not member.has_ended:
                member.tell("kill")
        for member in members:
            _end(member.process)


def _watch(members: list[Member], given: Orders, wants_pause: Callable[[], bool]) -> Outcome:
    is_pausing = False
    while not (ended := _ended(members)):
        _attend(members, given)
        if not is_pausing and wants_pause():
            is_pausing = True
            for member in members:
                member.tell("stop")
    if ended.code == 0:
        return ended
    # The others may have something to say about it, and end by themselves.
    for member in members:
        member.tell("end")
    deadline = time.monotonic() + FAREWELL_S
    while time.monotonic() < deadline and not all(m.has_ended or m.is_lost for m in members):
        _attend(members, given)
    lost = frozenset(member.host.name for member in members if member.is_lost)
    return dataclasses.replace(ended, lost=lost)


def _attend(members: list[Member], given: Orders) -> None:
    time.sleep(LOOK_EVERY_S)
    for order in given.new():
        for member in members:
            member.tell(order)


def _ended(members: list[Member]) -> Outcome | None:
    """How it has ended, when all have or any has failed or is lost; None: it goes on."""
    for member in members:
        if member.has_failed or member.is_lost:
            code = member.process.poll() if member.has_failed else None
            lost = frozenset([member.host.name] if member.is_lost else [])
            error = _explanation(member)
            return Outcome(error.exit_code if error else code or 1, lost, error)
    return Outcome(0) if all(member.has_ended for member in members) else None


def _explanation(member: Member) -> DragomanError | None:
    """None: its workers have said it themselves."""
    name = member.host.name
    if member.error:
        return member.error
    if not member.has_ended:
        ranks = ", ".join(map(str, member.ranks)) or "none yet"
        return RunError(
            f"{name} has not been heard from for {member.silent_s:.0f} s (ranks there: {ranks}); "
            f"it is down, or the network to it is, and {GOES_ON}"
        )
    if not member.has_spoken:
        return failure(member.host, member.process.returncode, "".join(member.complaints))
    if member.process.returncode == SSH_FAILED:
        return RunError(
            f"{name}: the connection to it broke; it went down, or its network did, and {GOES_ON}"
        )
    return None


def _start(cluster: Cluster, host: Host, receive: Receive) -> Member:
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
    for work in (_read_messages, _read_complaints):
        threading.Thread(
            target=work, args=(member, receive), name=f"from {host.name}", daemon=True
        ).start()
    return member


def _read_messages(member: Member, receive: Receive) -> None:
    assert member.process.stdout
    for line in member.process.stdout:
        member.heard_at = time.monotonic()
        match read_message(line):
            case None:
                continue
            case {"error": str(sentence)}:
                member.error = UserError(f"{member.host.name}: {sentence}")
            case {"meeting": [str(address), int(port)]}:
                member.meeting = (address, port)
            case {"ranks": ranks}:
                member.ranks = ranks
            case message:
                receive(member.host, message)
        member.has_spoken = True


def _read_complaints(member: Member, receive: Receive) -> None:
    assert member.process.stderr
    member.complaints.extend(member.process.stderr)


@contextmanager
def _kept_alive(members: list[Member]) -> Iterator[None]:
    """An agent that hears nothing ends its workers, so that a cut network leaves none behind."""
    ended = threading.Event()

    def speak() -> None:
        while not ended.wait(ALIVE_EVERY_S):
            for member in members:
                member.tell("alive")

    thread = threading.Thread(target=speak, name="alive", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


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
