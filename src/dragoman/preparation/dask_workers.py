"""Does tasks on the workers of a Dask cluster: the address of its scheduler comes in.

Where all workers see the prepared folder and the sources as this machine does, they read and write
these themselves, and only records come back. Where not, the text of a task travels with it, and its
result travels back to be written here. Either way the bytes are the same, and a result is finished
once this process has written its record.

Workers import the Dragoman that is installed there, which has to be this one; no code is sent.
"""

import asyncio
import logging
import secrets
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import dask
import distributed
import distributed.comm
import distributed.versions
from distributed.scheduler import KilledWorker

from dragoman import __version__
from dragoman.console import waiting
from dragoman.errors import DragomanError, RunError, UserError
from dragoman.preparation.plan import Plan
from dragoman.preparation.task import Done, Task, do_there, finish
from dragoman.version import code_hash

logger = logging.getLogger(__name__)

CONNECT_S = 10
WORKERS_S = 60
"""How long to wait for a worker, at the start or once all are lost."""
CHECK_EVERY_S = 1.0
MOST_TRIES = 4
"""Of a task whose worker was lost with what it had."""
_PACKAGES = ("dask", "distributed", "cloudpickle", "numpy", "sentencepiece")
"""Others could not talk to each other, or would give other bytes."""
_AGAIN = "run the same command again: what is finished stays"


class Shared(NamedTuple):
    """How a worker recognizes the files of this machine."""

    probe: Path
    token: str
    inputs: list[tuple[Path, int, int]]
    """Path, size and time of change in nanoseconds."""

    def is_seen(self) -> bool:
        try:
            status = [path.stat() for path, _, _ in self.inputs]
            found = [(s.st_size, s.st_mtime_ns) for s in status]
            return self.probe.read_text() == self.token and found == [i[1:] for i in self.inputs]
        except OSError:
            return False


@contextmanager
def dask_workers(
    address: str, plan: Plan, security: distributed.Security | None = None
) -> Iterator["DaskWorkers"]:
    """Connects to a scheduler, and checks that its workers can do the tasks of a plan."""
    with _silenced(), _connected(address, security) as client, _probe(plan) as shared:
        try:
            with waiting(f"waiting for workers of the Dask scheduler at {address}"):
                _wait_for_workers(client, address)
            if problem := unlike(client.get_versions(packages=_PACKAGES)) or _other_code(client):
                raise UserError(problem)
            seen = client.run(shared.is_seen)
            workers = DaskWorkers(client, address, shared if all(seen.values()) else None)
        except (OSError, distributed.TimeoutError) as error:  # not one of our files: the network
            raise _lost_scheduler(address) from error
        logger.info(workers.described())
        yield workers


class DaskWorkers:
    def __init__(self, client: distributed.Client, address: str, shared: Shared | None) -> None:
        """`shared`: what all workers see; None: text and results have to travel."""
        self._client, self._address, self._shared = client, address, shared
        self._workers = self._found()
        self._next_check = self._last_seen = time.monotonic()

    def described(self) -> str:
        threads, workers = sum(self._workers.values()), len(self._workers)
        how = (
            "which see the files of this machine: they read and write them themselves"
            if self._shared
            else "some of which do not see the files of this machine: text and results travel"
        )
        return f"{workers} Dask workers with {threads} threads, {how}"

    def do(self, tasks: Iterable[Task]) -> Iterator[int]:
        left = iter(tasks)
        running: dict[str, tuple[distributed.Future, Task, int]] = {}
        ended: SimpleQueue[distributed.Future] = SimpleQueue()

        def start(task: Task, tries: int) -> None:
            future = self._submit(task)
            running[future.key] = future, task, tries
            future.add_done_callback(ended.put)

        try:
            while True:
                while len(running) < self._room() and (following := next(left, None)):
                    start(following, 1)
                if not running:
                    return
                self._check()
                with suppress(Empty):
                    future, task, tries = running.pop(ended.get(timeout=CHECK_EVERY_S).key)
                    if done := self._done(future):
                        yield finish(task, done)
                    elif tries < MOST_TRIES:
                        start(task, tries + 1)
                    else:
                        raise RunError(_killed(task, tries))
        finally:
            with suppress(Exception):  # the scheduler may be gone
                self._client.cancel([future for future, *_ in running.values()], force=True)

    def _room(self) -> int:
        """Returns how many tasks may be under way: some wait, so that no worker does."""
        threads = sum(self._workers.values())
        return threads + max(2, threads // 4)

    def _submit(self, task: Task) -> distributed.Future:
        travelling = task if self._shared else task.with_bytes()
        key = f"{task.stage.folder.name}-{task.number:05d}-{secrets.token_hex(4)}"
        # Text that travels is large by nature.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "10GB"}):
            try:
                return self._client.submit(
                    do_on_worker, travelling, self._shared, code_hash(), key=key, pure=False
                )
            except (OSError, RuntimeError) as error:
                raise _lost_scheduler(self._address) from error

    def _done(self, future: distributed.Future) -> Done | None:
        """Returns what has come of a task that has ended; None: it was lost, do it again."""
        while True:
            try:
                return future.result(timeout=CHECK_EVERY_S)  # type: ignore[no-any-return]
            except (TimeoutError, distributed.TimeoutError):
                self._check()  # its worker was lost, and another one does it again
            except DragomanError:
                raise
            except KilledWorker as error:
                raise RunError(
                    f"{error.allowed_failures + 1} Dask workers were lost one after the other "
                    f"while they did the same task ({error.task}); perhaps they have too little "
                    f"memory: look at their logs, then {_AGAIN}"
                ) from None
            except (distributed.CancelledError, OSError):
                self._wait_for_scheduler()
                return None
            except Exception as error:
                if self._client.status != "running":
                    self._wait_for_scheduler()
                    return None
                raise RunError(
                    f"a Dask worker failed with {type(error).__name__}: {error}; look at its log, "
                    f"then {_AGAIN}"
                ) from error

    def _found(self) -> dict[str, int]:
        """Returns the threads of all workers by their addresses."""
        return dict(self._client.sync(self._client.scheduler.ncores, callback_timeout=CONNECT_S))

    def _check(self) -> None:
        """Looks after the workers once in a while; raises if none is left for too long."""
        now = time.monotonic()
        if now < self._next_check:
            return
        self._next_check = now + CHECK_EVERY_S
        try:
            workers = self._found()
        except (OSError, TimeoutError, distributed.TimeoutError):
            self._wait_for_scheduler()
            return
        if lost := len(self._workers.keys() - workers.keys()):
            logger.warning(
                f"{lost} of {len(self._workers)} Dask workers were lost; what they were at is "
                "done again by others"
            )
        self._workers = workers
        if workers:
            self._last_seen = now
        elif now - self._last_seen > WORKERS_S:
            raise RunError(
                f"the Dask scheduler at {self._address} has had no worker for {WORKERS_S} s; start "
                f"some with `dask worker {self._address}`, then {_AGAIN}"
            )

    def _wait_for_scheduler(self) -> None:
        """Returns once the client is connected again; raises if it gives up."""
        end = time.monotonic() + 2 * CONNECT_S
        while self._client.status == "connecting" and time.monotonic() < end:
            time.sleep(0.1)
        if self._client.status != "running":
            raise _lost_scheduler(self._address)


def _lost_scheduler(address: str) -> RunError:
    return RunError(
        f"the Dask scheduler at {address} is gone; start it and its workers again, then {_AGAIN}"
    )


def do_on_worker(task: Task, shared: Shared | None, code: str) -> Done:
    """Is what a worker runs. It may have come later than those that were checked."""
    if code != code_hash():
        raise RunError(f"{_here()} runs other code of Dragoman than the command; {_SAME}")
    if shared and not shared.is_seen():
        raise RunError(
            f"{_here()} does not see {shared.probe.parent}, which the others share; take it away, "
            f"or give it the same folders, then {_AGAIN}"
        )
    return do_there(task, is_written=shared is not None)


_SAME = f"install the same Dragoman ({__version__}) on all workers and on the scheduler"


def _here() -> str:
    return f"the Dask worker at {distributed.get_worker().address}"


def unlike(versions: Mapping[str, Any]) -> str | None:
    """Returns what is different elsewhere, from what Dask says of its versions; None: nothing."""
    ours = _compared(versions["client"])
    others = {"the Dask scheduler": versions["scheduler"]}
    others |= {f"the Dask worker at {name}": of for name, of in versions["workers"].items()}
    for who, of_them in others.items():
        theirs = _compared(of_them or {})
        for package, version in ours.items():
            if theirs.get(package) != version:
                found = theirs.get(package)
                return (
                    f"{who} has {f'{package} {found}' if found else f'no {package}'}, and here it "
                    f"is {version}; install the same version there, since others may not "
                    "understand each other, or give other bytes"
                )
    return None


def _compared(versions: Mapping[str, Any]) -> dict[str, str | None]:
    packages = versions.get("packages") or {}
    # The third number of a Python changes neither its pickles nor its Unicode.
    python = ".".join((packages.get("python") or "").split(".")[:2])
    return {"Python": python, **{name: packages.get(name) for name in _PACKAGES}}


def _other_code(client: distributed.Client) -> str | None:
    answers = {"the Dask scheduler": _asked_scheduler(client)}
    found = client.run(code_hash, on_error="return")
    answers |= {f"the Dask worker at {name}": code for name, code in found.items()}
    for who, code in answers.items():
        if isinstance(code, Exception):
            return f"{who} cannot run this Dragoman ({code}); {_SAME}"
        if code != code_hash():
            return f"{who} has other code of Dragoman than this machine; {_SAME}"
    return None


def _asked_scheduler(client: distributed.Client) -> Any:
    try:
        return client.run_on_scheduler(code_hash)
    except Exception as error:
        return error


@contextmanager
def _connected(address: str, security: distributed.Security | None) -> Iterator[distributed.Client]:
    try:
        _shake_hands(address, security or distributed.Security())
        with warnings.catch_warnings():  # `unlike` says what matters
            warnings.simplefilter("ignore", distributed.versions.VersionMismatchWarning)
            client = distributed.Client(
                address, timeout=CONNECT_S, security=security, set_as_default=False, name="dragoman"
            )
    except Exception as error:
        raise UserError(_why_not_connected(address, error)) from error
    try:
        yield client
    finally:
        with suppress(Exception):  # the scheduler may be gone
            client.close(timeout=CONNECT_S)


def _shake_hands(address: str, security: distributed.Security) -> None:
    """Raises an error unless Dask answers in time: a client waits for ever for another program."""

    async def connect() -> None:
        arguments = security.get_connection_args("client")
        await (await distributed.comm.connect(address, timeout=CONNECT_S, **arguments)).close()

    async def connect_in_time() -> None:
        await asyncio.wait_for(connect(), CONNECT_S)

    if not address.startswith("inproc:"):  # which belong to the loop of their thread
        # In a thread of its own, since a notebook's has a loop already.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, connect_in_time()).result()


def _why_not_connected(address: str, error: Exception) -> str:
    cause: BaseException = error
    while cause.__cause__:
        cause = cause.__cause__
    reason = str(cause) or type(cause).__name__
    advice = "check the address, and whether the scheduler runs there with the same version of Dask"
    if address.startswith("tls:") and isinstance(error, TypeError | ValueError):
        advice = (
            "name certificate and key in Dask's configuration (distributed.comm.tls), as the "
            "cluster has them"
        )
    return f"no Dask scheduler answers at {address} ({reason}); {advice}"


def _wait_for_workers(client: distributed.Client, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=WORKERS_S)
    except (TimeoutError, distributed.TimeoutError):
        raise UserError(
            f"the Dask scheduler at {address} has no workers; start some with "
            f"`dask worker {address} --nthreads 1 --nworkers auto`"
        ) from None
    except (OSError, RuntimeError) as error:
        raise UserError(_why_not_connected(address, error)) from error


@contextmanager
def _probe(plan: Plan) -> Iterator[Shared]:
    token = secrets.token_hex(16)
    path = plan.folder / f".probe-{token}"
    inputs = [(Path(file.path), file.bytes, file.modified_ns) for file in plan.inputs]
    plan.folder.mkdir(parents=True, exist_ok=True)
    path.write_text(token)
    try:
        yield Shared(path, token, inputs)
    finally:
        path.unlink(missing_ok=True)


def _killed(task: Task, tries: int) -> str:
    return (
        f"the Dask workers of task {task.number} in {task.stage.folder.name} were lost {tries} "
        f"times; look at their logs, then {_AGAIN}"
    )


_LOGGERS: Sequence[str] = ("distributed", "tornado", "asyncio")


@contextmanager
def _silenced() -> Iterator[None]:
    """Keeps the tracebacks that Dask logs off the terminal: what matters is said in a sentence."""
    levels = {name: logging.getLogger(name).level for name in _LOGGERS}
    for name in levels:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
