"""The agent of one host: has workers forked, watches them, and reports how they ended.

Run as `python -m dragoman.cluster.agent`, with lines on standard input: a `Job` starts workers;
`alive` comes now and then; `stop: REASON` means finish the step, save, end; `end` means that the
run has failed on another host, so leave as soon as the workers here have reported; `kill` means end
now. The agent ends its workers when its input closes or stays silent for a while, that is, when the
launcher is gone, however that happened.

It imports no torch. Workers are forked by a `Zygote` that has, so an agent that is kept for the
next job starts it at once.
"""

import logging
import os
import queue
import select
import shlex
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from dragoman.cluster.job import STOP, Job
from dragoman.cluster.relay import RecordSender, Relay
from dragoman.cluster.zygote import Zygote, ignore_signals, signal_name
from dragoman.console import console_output
from dragoman.cores import usable_cores
from dragoman.distributed.launchers import host_name, worker_variables
from dragoman.distributed.stop_reason import StopReason
from dragoman.errors import DragomanError, UserError, storage_errors
from dragoman.rundir import RunDir, write_whole
from dragoman.telemetry.record.log_file import LogFile, agent_writer
from dragoman.telemetry.record.redaction import secret_values

logger = logging.getLogger("dragoman.cluster.agent")  # it runs as __main__

SAVING_S = 120.0
"""How long workers may take to finish their step and save when they are asked to stop."""
FAREWELL_S = 15.0
"""How long workers may take to report who was lost and end, when one of them has failed."""
GIVING_UP_S = 5.0
"""How long the zygote may take to report the end of workers that were killed."""
STOPPED_S = 5.0
"""A worker that is stopped for longer is killed, since the other ranks wait for it."""
SILENCE_S = 30.0
"""A launcher that is silent for longer is gone, or the connection to it."""
POLL_EVERY_S = 0.1


class Commands:
    """Passes on the lines of standard input as they arrive, and None at its end."""

    def __init__(self, into: Callable[[str | None], None]) -> None:
        self.silence_s: float | None = None
        """Silence that counts as the end of the input; None if the launcher is a process of this
        machine, whose end closes the input."""
        self._into = into
        threading.Thread(target=self._read, name="commands", daemon=True).start()

    def _read(self) -> None:
        rest = b""
        while True:
            if not select.select([0], [], [], self.silence_s)[0]:
                break
            if not (more := os.read(0, 1 << 16)):
                break
            *lines, rest = (rest + more).split(b"\n")
            for line in lines:
                self._into(line.decode())
        self._into(None)


@dataclass
class Worker:
    rank: int
    pid: int | None = None
    """None until it has been forked."""
    code: int | None = None
    """Exit code, negative for a signal; None until it has ended."""
    stopped_at: float | None = None
    ended_by_us: bool = False

    @property
    def has_ended(self) -> bool:
        return self.code is not None

    @property
    def is_running(self) -> bool:
        return self.pid is not None and not self.has_ended

    def signal(self, number: int) -> None:
        if self.is_running:
            with suppress(ProcessLookupError):
                os.kill(self.pid or 0, number)

    def is_stopped(self) -> bool:
        if not self.is_running:
            return False
        try:
            return bool(psutil.Process(self.pid).status() == psutil.STATUS_STOPPED)
        except psutil.NoSuchProcess:
            return False


class Agent:
    """Runs jobs on one thread; the others only put what they receive into its inbox."""

    def __init__(self) -> None:
        self._inbox: queue.Queue[str | dict[str, Any] | None] = queue.Queue()
        self._commands = Commands(self._inbox.put)
        self._relay: Relay | None = None
        self._records: RecordSender | None = None
        self._zygote: Zygote | None = None
        self._is_warm = False
        self._job: Job | None = None
        self._workers: list[Worker] = []
        self._first_failed: Worker | None = None
        self._store_port = 0
        self._stop_reason = StopReason()
        self._is_stopping = False
        self._is_leaving = False
        """True if there will be no further job: the launcher is gone, or wants the agent to be."""
        self._deadline = float("inf")
        """When workers that are still running are killed."""
        self._outputs: list[threading.Thread] = []
        self._log: LogFile | None = None
        """Of the current job, if it belongs to a run."""

    def run(self) -> int:
        """Runs jobs until the launcher is gone or done; returns the exit code of the last job."""
        code = 0
        try:
            while not (self._is_leaving and self._job is None):
                self._attend()
                if self._job and self._is_done(self._job):
                    code = self._finish()
            return code
        finally:
            self._kill_workers()
            if self._zygote:
                self._zygote.close()
            self._end_log()
            if self._relay:
                self._relay.close()
            self._stop_reason.close()

    def _is_done(self, job: Job) -> bool:
        if job.only_warm_up:
            return self._is_warm or self._first_failed is not None
        return all(worker.has_ended for worker in self._workers)

    def _attend(self) -> None:
        with suppress(queue.Empty):
            match self._inbox.get(timeout=POLL_EVERY_S):
                case None:
                    self._leave()
                case "alive":
                    pass
                case "end":
                    self._end_soon()
                case "kill":
                    self._is_leaving = True
                    self._kill_workers()
                case str(line) if line.startswith(STOP):
                    self._stop(line.removeprefix(STOP))
                case str(line):
                    self._start(Job.from_line(line))
                case {"zygote": None}:
                    self._zygote_ended()
                case {"zygote": {"ready": True}}:
                    self._is_warm = True
                case {"zygote": {"name": name, "born": pid}}:
                    self._born(name, pid)
                case {"zygote": {"ended": pid, "code": code}}:
                    self._ended(pid, code)
        self._end_stopped()
        if time.monotonic() > self._deadline:
            self._kill_workers()
        if self._job and self._zygote and time.monotonic() > self._deadline + GIVING_UP_S:
            self._zygote.close()  # it does not even report that they have ended
            self._zygote_ended()

    def _start(self, job: Job) -> None:
        self._job = job
        self._is_stopping, self._first_failed, self._deadline = False, None, float("inf")
        self._stop_reason.write("")
        self._workers = [Worker(job.first_rank + number) for number in range(job.workers)]
        if job.relays and self._relay is None:
            self._relay = Relay()
            self._records = RecordSender(self._relay)
            self._commands.silence_s = SILENCE_S
        try:
            self._prepare(job)
        except DragomanError as error:
            self._report_error(str(error))
            self._workers[0].code = error.exit_code
            self._first_failed = self._workers[0]
            self._kill_workers()
            return
        for worker in self._workers if not job.only_warm_up else ():
            self._fork(job, worker)

    def _prepare(self, job: Job) -> None:
        if job.folder:
            with storage_errors(Path(job.folder), "entering the working folder"):
                os.chdir(Path(job.folder).expanduser())
        for name, content in job.files.items():
            write_whole(Path(name), content)
        self._end_log()
        if job.run and not job.only_warm_up:
            run, host = RunDir(Path(job.run).absolute()), host_name(job.environment)
            secrets = [job.secret, *secret_values(environment_of(job))]
            self._log = LogFile(run, agent_writer(host), secrets, job.run_id)
            ranks = ", ".join(f"rank {worker.rank}" for worker in self._workers)
            self._keep(f"starting {ranks}: {shlex.join(['dragoman', *job.arguments])}")
        if self._records:
            self._records.follow(job)
        self._store_port = job.store_port
        if self._zygote is None:
            output = self._output_of(self._workers[0])
            self._zygote = Zygote(environment_of(job), self._on_zygote, output, job.arguments)
            if output is not None:
                os.close(output)
                self._outputs.clear()  # the end of a job does not wait for that of the zygote
        if job.only_warm_up:
            return
        if job.store_port:
            check_forward(job.store_port)
            return
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self._store_port = listening.getsockname()[1]
            self._zygote.fork_store(listening)

    def _fork(self, job: Job, worker: Worker) -> None:
        assert self._zygote
        output = self._output_of(worker)
        self._zygote.fork_worker(
            f"rank {worker.rank}",
            job.arguments,
            job.environment
            | self._stop_reason.variables
            | worker_variables(
                worker.rank,
                job.ranks or job.workers,
                worker.rank - job.first_rank,
                job.workers,
                self._store_port,
                job.secret,
            ),
            output,
        )
        if output is not None:
            os.close(output)

    def _on_zygote(self, message: dict[str, Any] | None) -> None:
        self._inbox.put({"zygote": message})

    def _output_of(self, worker: Worker) -> int | None:
        """Returns a pipe whose lines are sent home; None if it prints where this process prints."""
        if self._relay is None:
            return None
        ours, theirs = os.pipe()
        thread = threading.Thread(target=self._read, args=(ours, worker.rank), daemon=True)
        thread.start()
        self._outputs.append(thread)
        return theirs

    def _read(self, descriptor: int, rank: int) -> None:
        assert self._relay
        with os.fdopen(descriptor, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self._keep(f"rank {rank} | {line.rstrip()}")
                self._relay(rank=rank, line=line.rstrip("\n"))

    def _keep(self, text: str) -> None:
        if log := self._log:  # another thread may end it
            log.write(text)

    def _end_log(self) -> None:
        if self._log:
            self._log.close()
            self._log = None

    def _born(self, name: str, pid: int) -> None:
        for worker in self._workers:
            if name == f"rank {worker.rank}" and worker.pid is None:
                worker.pid = pid
                if worker.has_ended:  # killed before it was there
                    os.kill(pid, signal.SIGKILL)
                elif self._is_stopping:
                    worker.signal(signal.SIGTERM)

    def _ended(self, pid: int, code: int) -> None:
        for worker in self._workers:
            if worker.pid == pid and not worker.has_ended:
                worker.code = code
                how = f"was ended by {signal_name(-code)}" if code < 0 else f"ended, code {code}"
                self._keep(f"rank {worker.rank} {how}")
                if code and self._first_failed is None:
                    self._first_failed = worker
                    self._end_soon()
                if code < 0 and not self._is_stopping:
                    self._report_death(worker)

    def _report_death(self, worker: Worker) -> None:
        """Reports a worker that was killed, since it could not do so itself."""
        if worker.ended_by_us and worker.stopped_at is None:
            return
        assert self._job
        assert self._zygote
        assert worker.code
        name = signal_name(-worker.code)
        hint = "; the system may have run out of memory" if name == "SIGKILL" else ""
        what = f"was ended by {name}{hint}"
        if worker.ended_by_us:
            what = f"was stopped for {STOPPED_S:.0f} s, and ended"
        self._zygote.fork_witness(self._store_port, self._job.secret, worker.rank, what)
        text = f"rank {worker.rank} on {host_name(self._job.environment)} {what}"
        self._keep(f"error: {text}")
        if self._relay:
            self._relay(killed=worker.rank, line=text)
        else:
            logger.error(text)

    def _end_stopped(self) -> None:
        """Kills workers that stay stopped; at once if all are to end, since they ignore SIGTERM."""
        for worker in self._workers:
            if worker.ended_by_us:
                continue
            if not worker.is_stopped():
                worker.stopped_at = None
                continue
            worker.stopped_at = worker.stopped_at or time.monotonic()
            is_ending = self._deadline != float("inf")
            if is_ending or time.monotonic() - worker.stopped_at > STOPPED_S:
                worker.ended_by_us = True
                worker.stopped_at = None if is_ending else worker.stopped_at
                worker.signal(signal.SIGKILL)

    def _stop(self, reason: str) -> None:
        if not self._is_stopping:  # the first reason stays
            self._stop_reason.write(reason)
            self._keep(f"{reason}; the workers finish their step and save")
        self._is_stopping = True
        self._deadline = min(self._deadline, time.monotonic() + SAVING_S)
        for worker in self._workers:
            worker.signal(signal.SIGTERM)

    def _leave(self) -> None:
        self._is_leaving = True
        self._stop("the launcher is gone, or the connection to it")

    def _end_soon(self) -> None:
        self._deadline = min(self._deadline, time.monotonic() + FAREWELL_S)

    def _kill_workers(self) -> None:
        for worker in self._workers:
            if not worker.has_ended:
                worker.ended_by_us = True
                worker.signal(signal.SIGKILL)
                if worker.pid is None:
                    worker.code = -signal.SIGKILL

    def _zygote_ended(self) -> None:
        """Gives up on the workers: the kernel ends them, and their exit codes are lost."""
        self._zygote, self._is_warm = None, False
        if self._job and not self._is_leaving:
            self._report_error("the process that starts the workers ended; see its output above")
        self._kill_workers()
        for worker in self._workers:
            worker.code = worker.code if worker.has_ended else -signal.SIGKILL
        self._first_failed = self._first_failed or next(iter(self._workers), None)

    def _finish(self) -> int:
        """Reports the end of a job whose workers have all ended, and gets ready for the next."""
        assert self._job
        job, self._job = self._job, None
        code = self._code()
        for thread in self._outputs:
            thread.join(timeout=1.0)  # the last lines are on their way through the pipes
        self._outputs.clear()
        self._end_log()
        if self._records:
            self._records.send_new()
        if self._relay:
            self._relay(ended=code, start=job.start)
        self._is_leaving = self._is_leaving or not job.relays
        return code

    def _code(self) -> int:
        if self._first_failed is None or self._first_failed.code is None:
            return 0
        if self._first_failed.code < 0:
            # A worker that had no signal handler yet was ended by being asked to stop.
            return 0 if self._is_stopping else 1
        return self._first_failed.code

    def _report_error(self, message: str) -> None:
        self._keep(f"error: {message}")
        if self._relay:
            self._relay(error=message)
        else:
            logger.error(message)


def environment_of(job: Job) -> dict[str, str]:
    """Returns the environment of the zygote, some of which libraries read when they are loaded."""
    cores = usable_cores()
    defaults = {
        "OMP_NUM_THREADS": str(max(1, cores // job.workers)),
        # Its warnings are about names that it could not look up, for addresses that we gave it.
        "TORCH_CPP_LOG_LEVEL": "ERROR",
    }
    return defaults | os.environ | job.environment


def check_forward(port: int) -> None:
    """Refuses a forwarded port that this host's sshd has opened to its networks."""
    for name, addresses in psutil.net_if_addrs().items():
        for address in addresses:
            if address.family != socket.AF_INET or address.address.startswith("127."):
                continue
            with suppress(OSError), socket.create_connection((address.address, port), 1.0):
                raise UserError(
                    f"its sshd opens forwarded ports to the network ({address.address} on {name}); "
                    "set GatewayPorts no in its sshd_config"
                )


def main() -> int:
    ignore_signals()
    with console_output():
        return Agent().run()


if __name__ == "__main__":
    # Not through the interpreter's shutdown: a thread may still be waiting for input.
    os._exit(main())
