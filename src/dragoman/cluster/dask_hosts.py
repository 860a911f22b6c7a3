"""A Dask cluster on hosts that ssh reaches: a host list comes in, a scheduler's address goes out.

The scheduler runs on the first host, workers on all, one for each core. They talk to each other
over the hosts' network, encrypted, and accept only who has the certificate of this cluster: it is
made for it, given to the hosts over ssh and nowhere written. This machine reaches the scheduler
through ssh. All of it ends with the connections.
"""

import json
import logging
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import IO, Any, NamedTuple

import distributed

from dragoman.cluster.hosts import Cluster, Host
from dragoman.cluster.preflight import preflight
from dragoman.cluster.ssh import failure, read_message, run_module, ssh_command
from dragoman.console import waiting
from dragoman.errors import RunError, UserError
from dragoman.installation import install_command

logger = logging.getLogger(__name__)

START_S = 120
END_S = 10
_NO_DATA = ".no-prepared-data"  # preflight would read all of what there is
PEM = ("tls_ca_file", "tls_scheduler_cert", "tls_scheduler_key", "tls_worker_cert",
       "tls_worker_key", "tls_client_cert", "tls_client_key")  # fmt: skip
"""What makes a member of the cluster. Here these are contents, not files."""


class DaskCluster(NamedTuple):
    address: str
    security: distributed.Security


@contextmanager
def dask_on_hosts(cluster: Cluster) -> Iterator[DaskCluster]:
    """Starts scheduler and workers; they end when this does, or when this process does."""
    ready = preflight(cluster, _NO_DATA, "cpu", None, oversubscribe=True)
    security = temporary_security()
    shared = {name: getattr(security, name) for name in PEM}
    with ExitStack() as opened:
        scheduler = ""
        started: list[_Process] = []
        with waiting("starting Dask on the hosts"):
            for host in ready.cluster.hosts:
                question = {
                    "scheduler": scheduler or None,
                    "address": ready.interfaces[host.name].address,
                    "workers": host.devices or ready.facts[host.name].cores,
                    "security": shared,
                }
                process = opened.enter_context(_started(cluster, host, question))
                scheduler = scheduler or process.address()
                started.append(process)
            for process in started[1:]:  # they start beside each other
                process.address()
            port = opened.enter_context(_tunnel(cluster, ready.cluster.hosts[0], scheduler))
        yield DaskCluster(f"tls://127.0.0.1:{port}", security)


def temporary_security() -> distributed.Security:
    try:
        return distributed.Security.temporary()
    except ImportError:
        raise UserError(
            f"--dask ssh: makes a certificate, for which a package is missing; "
            f"{install_command('dask')}"
        ) from None


class _Process:
    """`dask_host` on a host, while the connection lasts."""

    def __init__(self, host: Host, process: subprocess.Popen[str], errors: IO[bytes]) -> None:
        self._host, self._process, self._errors = host, process, errors

    def address(self) -> str:
        """Returns the scheduler's address once there is one."""
        assert self._process.stdout
        late = threading.Event()

        def give_up() -> None:
            late.set()
            self._process.kill()

        timer = threading.Timer(START_S, give_up)
        timer.start()
        try:
            for line in self._process.stdout:
                if message := read_message(line):
                    if "error" in message:
                        raise UserError(f"{self._host.name}: {message['error']}")
                    return str(message["address"])
            code = self._process.wait()
        finally:
            timer.cancel()
        if late.is_set():
            raise RunError(
                f"{self._host.name}: has not started Dask within {START_S} s; see what keeps it"
            )
        self._errors.seek(0)
        raise failure(self._host, code, self._errors.read().decode(errors="replace"))


@contextmanager
def _started(cluster: Cluster, host: Host, question: dict[str, Any]) -> Iterator[_Process]:
    command = ssh_command(cluster, host, run_module(host, "dragoman.cluster.dask_host"))
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,  # Ctrl-C reaches this process alone
        ) as process,
    ):
        assert process.stdin
        try:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            yield _Process(host, process, errors)
        finally:
            _end(process)


@contextmanager
def _tunnel(cluster: Cluster, host: Host, scheduler: str) -> Iterator[int]:
    """Forwards a port of this machine's loopback to the scheduler."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    to = scheduler.removeprefix("tls://")
    forward = ["-S", "none", "-o", "ExitOnForwardFailure=yes", "-L", f"127.0.0.1:{port}:{to}"]
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            ssh_command(cluster, host, "exec cat", forward),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        try:
            end = time.monotonic() + START_S
            while not _listens(port):
                if process.poll() is not None:
                    errors.seek(0)
                    said = errors.read().decode(errors="replace")
                    raise failure(host, process.returncode, said)
                if time.monotonic() > end:
                    raise RunError(f"{host.name}: ssh has not forwarded a port in {START_S} s")
                time.sleep(0.1)
            yield port
        finally:
            _end(process)


def _listens(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


def _end(process: subprocess.Popen[str]) -> None:
    """Ends a connection: what runs at its other end waits for its input to end."""
    assert process.stdin
    with suppress(BrokenPipeError):  # it has ended already
        process.stdin.close()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
