"""A process that has imported torch and the training code once, and forks workers that are ready.

Importing takes seconds, forking takes milliseconds, so a run that lost a rank restarts almost at
once. The zygote computes nothing and starts no thread, neither of which would survive a fork; in
particular it never touches CUDA.

`Zygote` is the parent's side, without torch. It sends orders over a socket pair, one JSON object
per message, and receives a message at the end of each child. However the parent ends, the kernel
then ends the zygote, and with that sends SIGTERM to each worker, which can still save. A
SIGTERM to all processes at once, as job systems send it, is for the workers alone.
"""

import ctypes
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, NoReturn

from dragoman.console import open_missing_streams
from dragoman.distributed.parent import end_with_parent

MODULE = "dragoman.cluster.zygote"
POLL_S = 0.05
MESSAGE_BYTES = 1 << 17
PR_SET_NAME = 15
IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# What a worker needs until its first step. torch imports the last two only when an optimizer
# takes its first step, which would take a second there.
IMPORTS = (
    "dragoman.cli",
    "dragoman.diagnosis.watch",
    "dragoman.training.train",
    "torch.optim.adamw",
    "torch._dynamo",
)

_libc = ctypes.CDLL(None)

OnMessage = Callable[[dict[str, Any] | None], None]
"""Receives {"ready": True} once, {"name", "born": pid} and {"name", "ended": pid, "code"} of each
child, and None when the zygote ends. The code is negative for a signal, as in `subprocess`.
"""


class Zygote:
    """Create it in the main thread: the kernel watches the thread that has started a process."""

    def __init__(
        self,
        environment: Mapping[str, str],
        on_message: OnMessage,
        output: IO[Any] | int | None = None,
        arguments: Sequence[str] = (),
    ) -> None:
        """`output` is where the zygote and its children print; by default where this process does.

        `arguments` are those of the workers to come, shown in lists of processes: a child has
        the command line of its parent.
        """
        self._on_message = on_message
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, "-m", MODULE, str(theirs.fileno()), str(os.getpid()), *arguments],
            pass_fds=[theirs.fileno()],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        theirs.close()
        threading.Thread(target=self._listen, name="zygote", daemon=True).start()

    def fork_worker(
        self,
        name: str,
        arguments: list[str],
        environment: Mapping[str, str],
        output: int | None = None,
    ) -> None:
        """Forks a process that runs `dragoman ARGUMENTS` and prints to the descriptor `output`."""
        order = {"worker": arguments, "environment": dict(environment)}
        self._fork(name, order, [] if output is None else [output])

    def fork_store(self, listening: socket.socket) -> None:
        """Forks a store for ranks to meet in, behind a socket that already listens."""
        self._fork("store", {"store": True}, [listening.fileno()])

    def fork_witness(self, port: int, secret: str, rank: int, what: str) -> None:
        """Forks a process that records a rank's death where the other ranks read its heartbeat."""
        self._fork("witness", {"witness": what, "port": port, "secret": secret, "rank": rank}, [])

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._channel.close()

    def _fork(self, name: str, order: dict[str, Any], descriptors: list[int]) -> None:
        message = json.dumps(order | {"name": name}).encode()
        with suppress(OSError):  # it has ended, which is reported to `on_message`
            socket.send_fds(self._channel, [message], descriptors)

    def _listen(self) -> None:
        while True:
            try:
                message = self._channel.recv(MESSAGE_BYTES)
            except OSError:
                message = b""
            if not message:
                break
            self._on_message(json.loads(message))
        self._on_message(None)


def ignore_signals() -> None:
    """Ignores signals, for helper processes: they end with their parent."""
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)


def name_process(name: str) -> None:
    """Sets the name shown in lists of processes; at most 15 characters."""
    _libc.prctl(PR_SET_NAME, name.encode())


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def serve(channel: socket.socket) -> None:
    """Forks what is ordered and reports what has ended, until the other side closes."""
    zygote = os.getpid()
    names: dict[int, str] = {}
    _report(channel, ready=True)
    while True:
        if select.select([channel], [], [], POLL_S)[0]:
            message, descriptors, _, _ = socket.recv_fds(channel, MESSAGE_BYTES, maxfds=4)
            if not message:
                return
            order = json.loads(message)
            # A signal to a newborn child stays pending until the child no longer ignores it.
            signal.pthread_sigmask(signal.SIG_BLOCK, IGNORED)
            if (child := os.fork()) == 0:
                channel.close()
                _become(order, descriptors, zygote)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, IGNORED)
            for descriptor in descriptors:
                os.close(descriptor)
            names[child] = order["name"]
            _report(channel, name=order["name"], born=child)
        while ended := _ended_child():
            child, status = ended
            code = os.waitstatus_to_exitcode(status)
            _report(channel, name=names.pop(child), ended=child, code=code)


def _ended_child() -> tuple[int, int] | None:
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, status) if pid else None


def _report(channel: socket.socket, **content: object) -> None:
    channel.send(json.dumps(content).encode())


def _become(order: dict[str, Any], descriptors: list[int], zygote: int) -> NoReturn:
    """Runs the child that was ordered, and exits."""
    code = 1
    try:
        is_worker = "worker" in order
        end_with_parent(zygote, signal.SIGTERM if is_worker else signal.SIGKILL)
        os.setsid()
        if is_worker:
            for number in IGNORED:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, IGNORED)
            code = _work(order["worker"], order["environment"], descriptors)
        elif "store" in order:
            name_process("dragoman-store")
            _keep_store(descriptors[0])
        else:
            _record_death(order["port"], order["secret"], order["rank"], order["witness"])
            code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # Not through the interpreter's shutdown, which belongs to the zygote.
        os._exit(code)


def _work(arguments: list[str], environment: dict[str, str], descriptors: list[int]) -> int:
    for descriptor in descriptors:
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        os.close(descriptor)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    os.environ.update(environment)
    sys.argv = ["dragoman", *arguments]
    name_process(f"dragoman-{environment['RANK']}")
    try:
        runpy.run_module("dragoman", run_name="__main__")
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    return 0


def _keep_store(listening: int) -> NoReturn:
    from torch._C._distributed_c10d import TCPStore  # noqa: PLC0415

    address, port = socket.socket(fileno=os.dup(listening)).getsockname()[:2]
    kept = TCPStore(
        address, port, is_master=True, wait_for_workers=False, master_listen_fd=listening
    )
    while kept:
        signal.pause()
    raise AssertionError


def _record_death(port: int, secret: str, rank: int, what: str) -> None:
    from dragoman.distributed.group import open_store  # noqa: PLC0415
    from dragoman.distributed.pulse import record_death  # noqa: PLC0415
    from dragoman.distributed.seal import Seal  # noqa: PLC0415

    record_death(open_store("127.0.0.1", port, Seal(secret)), Seal(secret), rank, what)


def main() -> None:
    descriptor, parent = map(int, sys.argv[1:3])
    open_missing_streams()
    ignore_signals()
    end_with_parent(parent, signal.SIGKILL)
    with socket.socket(fileno=descriptor) as channel:
        for module in IMPORTS:
            importlib.import_module(module)
        # Python counts threads of numerical libraries, which handle a fork themselves.
        warnings.filterwarnings("ignore", message=".*fork.*", category=DeprecationWarning)
        serve(channel)


if __name__ == "__main__":
    main()
