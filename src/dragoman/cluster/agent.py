"""Torch's elastic agent for one host: starts the workers, watches them, ends with their code.

Run as `python -m dragoman.cluster.agent` with a `Job` on the first line of standard input; with
`probe` and `transfer` the only part of `cluster` that imports torch. Further lines: `alive` now and
then, `stop` (finish the step, save, end), `end` (the run has failed on another host; leave as soon
as the workers here have had their say), `kill` (end now). The agent ends its workers when its input
closes or says nothing for a while, that is, when whoever started it is gone, however that happened.
"""

import logging
import os
import queue
import select
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import psutil
from torch._C._distributed_c10d import TCPStore
from torch.distributed.elastic.agent.server.api import RunResult, WorkerGroup, WorkerSpec
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from torch.distributed.elastic.multiprocessing.api import LogsDest, LogsSpecs, SignalException
from torch.distributed.elastic.multiprocessing.errors import ProcessFailure
from torch.distributed.elastic.rendezvous import RendezvousParameters
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import create_handler

from dragoman.cluster.job import Job
from dragoman.cluster.ssh import send_message
from dragoman.errors import DragomanError, RunError, UserError
from dragoman.rundir import write_whole
from dragoman.telemetry.tail import Tail

SAVING_S = 120
"""How long workers may take to finish their step and save when they are asked to stop."""
STOPPED_S = 15.0
"""A worker that is stopped for so long is ended. Once ranks have met they name it sooner."""
LAST_WORDS_S = 6.0
"""What the agent gets to end by itself when its workers have ended."""
SILENCE_S = 30.0
"""A launcher that says nothing for so long is gone, or the way to it."""
ALIVE_EVERY_S = 1.0
RELAYED = 10_000
"""Messages that wait for a slow connection home; beyond that, lines are dropped and counted."""


class Relay:
    """Messages home, from any thread, sent by one; never waited for.

    A connection that is cut would otherwise stop the workers at their next line of output.
    """

    def __init__(self) -> None:
        self._queue: queue.Queue[dict[str, Any] | None] = queue.Queue(RELAYED)
        self._dropped = 0
        self._thread = threading.Thread(target=self._send, name="relay", daemon=True)
        self._thread.start()

    def __call__(self, **message: Any) -> None:
        try:
            self._queue.put_nowait(message)
        except queue.Full:
            self._dropped += 1

    @property
    def has_room(self) -> bool:
        return self._queue.qsize() < RELAYED // 2

    def close(self) -> None:
        try:
            self._queue.put(None, timeout=1.0)
        except queue.Full:
            return
        self._thread.join(timeout=5.0)

    def _send(self) -> None:
        try:
            while (message := self._queue.get()) is not None:
                send_message(sys.stdout, message)
                if self._dropped and self._queue.empty():
                    send_message(sys.stdout, {"dropped": self._dropped})
                    self._dropped = 0
        except OSError:
            return  # nobody listens any more; the silence on our input will end the workers


class Outputs(LogsSpecs):
    """Each worker's output, line by line, through a named pipe: nothing gathers on a disk."""

    def __init__(self, folder: Path, relay: Relay | None) -> None:
        super().__init__(str(folder))
        self._folder, self._relay = folder, relay
        self.ranks: list[int] = []

    @property
    def root_log_dir(self) -> str:
        return str(self._folder)

    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        self.ranks = [int(env["RANK"]) for env in envs.values()]
        errors = {local: str(self._folder / f"error-{local}.json") for local in envs}
        if self._relay is None:
            return LogsDest(dict.fromkeys(envs, ""), dict.fromkeys(envs, ""), error_files=errors)
        self._relay(ranks=self.ranks)
        pipes = {}
        for local, env in envs.items():
            path = self._folder / f"output-{local}"
            os.mkfifo(path, 0o600)
            # Opened for both, it neither waits for a writer nor ends with the first of them.
            descriptor = os.open(path, os.O_RDWR)
            _in_background(self._read, descriptor, int(env["RANK"]))
            pipes[local] = str(path)
        return LogsDest(pipes, pipes, error_files=errors)

    def _read(self, descriptor: int, rank: int) -> None:
        assert self._relay
        with os.fdopen(descriptor, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self._relay(rank=rank, line=line.rstrip("\n"))


class Agent(LocalElasticAgent):
    """Also ends workers that are stopped.

    When one has failed, torch asks the others to end and gives them half a minute, in which they
    may say who was lost; a worker that is stopped hears nothing.
    """

    def __init__(self, spec: WorkerSpec, logs_specs: LogsSpecs) -> None:
        super().__init__(spec, logs_specs=logs_specs, shutdown_timeout=SAVING_S)
        self._stopped_at: dict[int, float] = {}
        self.ended: frozenset[int] = frozenset()
        """Processes that had been stopped for too long."""

    def _monitor_workers(self, worker_group: WorkerGroup) -> RunResult:
        workers = self._pcontext.pids().values() if self._pcontext else ()
        if any(map(_has_ended, workers)):
            _kill_stopped()
        now = time.monotonic()
        stopped = filter(_is_stopped, workers)
        self._stopped_at = {pid: self._stopped_at.get(pid, now) for pid in stopped}
        if self._stopped_at and now - min(self._stopped_at.values()) > STOPPED_S:
            self.ended |= _kill_stopped()
        result: RunResult = super()._monitor_workers(worker_group)
        return result


def main() -> int:
    # A worker explains its own failure; the agent's tables about it would bury that sentence.
    logging.disable(logging.CRITICAL)
    commands = Commands()
    job = commands.job()
    relay = Relay() if job.relays else None
    try:
        return _run(job, commands, relay)
    except DragomanError as error:
        if relay:
            relay(error=str(error))
        else:
            print(f"error: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    finally:
        if relay:
            relay.close()


def _run(job: Job, commands: "Commands", relay: Relay | None) -> int:
    if job.folder:
        os.chdir(Path(job.folder).expanduser())
    for name, content in job.files.items():
        write_whole(Path(name), content)
    os.environ.update(job.environment)
    # Its warnings are about names that it could not look up, for addresses that we gave it.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    cores = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, cores // job.workers)))
    store = _meet(job, relay)
    news = News(job, relay) if relay else None
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        commands.watch(has_deadline=job.relays, folder=Path(folder))
        code = _work(job, store, Outputs(Path(folder), relay), relay, commands)
        time.sleep(0.2 if relay else 0)  # the last lines are on their way through the pipes
    if news:
        news.close()
    return code


def _meet(job: Job, relay: Relay | None) -> TCPStore:
    """Where agents and workers find each other: bound to the address between hosts, no other."""
    address, port = job.meeting
    if job.number != 0:
        try:
            return TCPStore(address, port, is_master=False, timeout=timedelta(seconds=30))
        except (RuntimeError, TimeoutError) as error:  # torch's own DistNetworkError among them
            raise RunError(
                f"cannot reach port {port} of {address} on the first host; is a firewall between "
                "them, or is the address wrong?"
            ) from error
    listening = socket.create_server((address, 0)) if port == 0 else _listen(address, port)
    port = listening.getsockname()[1]
    store = TCPStore(
        address,
        port,
        is_master=True,
        wait_for_workers=False,
        timeout=timedelta(seconds=60),
        master_listen_fd=listening.detach(),
    )
    if relay:
        relay(meeting=[address, port])
    return store


def _listen(address: str, port: int) -> socket.socket:
    try:
        return socket.create_server((address, port))
    except OSError as error:
        raise UserError(
            f"port {port} of {address} cannot be used ({error.strerror}); free it, or set another "
            "port in the host list"
        ) from error


def _work(
    job: Job, store: TCPStore, outputs: Outputs, relay: Relay | None, commands: "Commands"
) -> int:
    handler = create_handler(
        store,
        C10dRendezvousBackend(store, job.identity),
        RendezvousParameters(
            backend="c10d",
            endpoint=f"{job.meeting[0]}:{store.port}",
            run_id=job.identity,
            min_nodes=job.hosts,
            max_nodes=job.hosts,
            local_addr=job.address,
            join_timeout="120",
        ),
    )
    program, *arguments = job.command
    agent = Agent(
        WorkerSpec(
            role="worker",
            local_world_size=job.workers,
            entrypoint=program or sys.executable,
            args=tuple(arguments),
            rdzv_handler=handler,
            max_restarts=0,
            monitor_interval=0.1,
            local_addr=job.address,
        ),
        outputs,
    )
    try:
        result = agent.run()
    except SignalException:
        return 0  # the workers were told; status.json says what became of the run
    if not result.is_failed():
        return 0
    first = min(result.failures.values(), key=lambda failure: failure.timestamp)
    if first.exitcode < 0 and first.pid not in commands.seen_off:
        _tell_killed(first, result.failures, first.pid in agent.ended, relay)
    return first.exitcode if first.exitcode > 0 else 1


def _tell_killed(
    first: ProcessFailure,
    failures: dict[int, ProcessFailure],
    was_stopped: bool,
    relay: Relay | None,
) -> None:
    """A worker that was killed could not say so itself."""
    rank = next(rank for rank, failure in failures.items() if failure is first)
    name = signal.Signals(-first.exitcode).name
    hint = "; the system may have run out of memory" if name == "SIGKILL" else ""
    text = f"rank {rank} on {socket.gethostname()} was ended by {name}{hint}"
    if was_stopped:
        text = f"rank {rank} on {socket.gethostname()} was stopped for {STOPPED_S:.0f} s, and ended"
    if relay:
        relay(killed=rank, line=text)
    else:
        print(f"error: {text}", file=sys.stderr, flush=True)


class Commands:
    """Lines on standard input, read without a buffer that would hide them from `select`."""

    def __init__(self) -> None:
        self._rest = b""
        self._folder = Path()
        self.seen_off: frozenset[int] = frozenset()
        """Workers that had been stopped, so that we have ended them."""

    def job(self) -> Job:
        """The first line, which may be long in coming: the first host finds the place to meet."""
        while (line := self._line(None)) == "alive":
            pass
        if line in (None, "stop", "end", "kill"):
            sys.exit(line != "stop")
        return Job.from_line(line)

    def watch(self, has_deadline: bool, folder: Path) -> None:
        """Obey from now on; `folder` is removed whichever way the agent ends."""
        self._folder = folder
        _in_background(self._obey, SILENCE_S if has_deadline else None)

    def _obey(self, deadline_s: float | None) -> None:
        while line := self._line(deadline_s):
            match line:
                case "kill":
                    self._leave()
                case "end":
                    self.seen_off = _kill_stopped()
                    _in_background(self._leave_after_workers, float("inf"))
                case "stop":
                    os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        self._leave_after_workers(SAVING_S)

    def _leave_after_workers(self, patience_s: float) -> None:
        """For a main thread that waits in the store of a host that is cut off, deaf to signals."""
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline and _workers():
            time.sleep(0.2)
        time.sleep(LAST_WORDS_S)
        self._leave()

    def _leave(self) -> NoReturn:
        _kill(_workers())
        shutil.rmtree(self._folder, ignore_errors=True)
        os._exit(1)

    def _line(self, deadline_s: float | None) -> str | None:
        """None: the input has ended, or nothing came in time."""
        while b"\n" not in self._rest:
            if not select.select([0], [], [], deadline_s)[0]:
                return None
            if not (more := os.read(0, 1 << 16)):
                return None
            self._rest += more
        line, self._rest = self._rest.split(b"\n", 1)
        return line.decode()


def _in_background(work: Callable[..., None], *arguments: object) -> None:
    threading.Thread(target=work, args=arguments, daemon=True).start()


def _kill_stopped() -> frozenset[int]:
    """End the workers that are stopped: they would not hear that they are asked to."""
    stopped = [pid for pid in _workers() if _is_stopped(pid)]
    _kill(stopped)
    return frozenset(stopped)


def _is_stopped(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_STOPPED
    except psutil.NoSuchProcess:
        return False


def _has_ended(pid: int) -> bool:
    """Whoever started it can still ask with which code."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # they have asked
        return True


def _kill(workers: Iterable[int]) -> None:
    for pid in workers:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _workers() -> list[int]:
    """Those that have not ended."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


class News:
    """Tells home once a second that this host is alive, and what has grown in the run's records."""

    def __init__(self, job: Job, relay: Relay) -> None:
        self._relay = relay
        self._tail = Tail(Path(job.run), job.known, job.home_token) if job.run else None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._send, name="news", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._thread.join(timeout=10.0)

    def _send(self) -> None:
        while not self._ended.wait(ALIVE_EVERY_S):
            self._relay(alive=True)
            self._pass_on()
        self._pass_on()

    def _pass_on(self) -> None:
        # Output that is dropped is a pity; a gap in the records would be a fault.
        if self._tail and self._relay.has_room:
            for piece in self._tail.news():
                self._relay(record=piece.name, begin=piece.begin, text=piece.text)


if __name__ == "__main__":
    # Not by the interpreter's own way: torch's threads may wait for a host that is cut off.
    os._exit(main())
