"""The side of a check that runs on each host: `python -m dragoman.check.host`, over ssh.

Reads orders as JSON lines, does them one after the other, and answers each with one or two messages
that carry its number. A thread reads the input, and ends the process when it closes or stays
silent, whatever the main thread is waiting for: sockets and children go with it.
"""

import json
import os
import queue
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dragoman.check import bandwidth, describe, disk
from dragoman.cluster.ssh import send_message
from dragoman.cluster.zygote import ignore_signals
from dragoman.cores import usable_cores
from dragoman.errors import DragomanError, RunError

SILENCE_S = 30.0
"""Without a line for so long, the checking machine is gone; it sends one every few seconds."""

Answers = Iterator[dict[str, Any]]


class Gemm:
    """The workers that measure how fast this host computes, once they have been warmed up."""

    def __init__(self) -> None:
        self._workers: list[subprocess.Popen[str]] = []

    def warm_up(self, order: dict[str, Any]) -> Answers:
        """Starts as many processes as training would, with as many threads; they take seconds."""
        count, is_cuda = order["workers"], order["device"] == "cuda"
        cores = usable_cores()
        program = [sys.executable, "-m", "dragoman.check.gemm"]
        threads = {"OMP_NUM_THREADS": str(max(1, cores // count))}
        self._workers = [
            subprocess.Popen(
                [*program, f"cuda:{n}" if is_cuda else "cpu", str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=threads | os.environ,
            )
            for n in range(count)
        ]
        yield {}

    def wait(self, order: dict[str, Any]) -> Answers:
        for worker in self._workers:
            self._line_of(worker)
        yield {}

    def measure(self, order: dict[str, Any]) -> Answers:
        for worker in self._workers:
            assert worker.stdin
            worker.stdin.write("go\n")
            worker.stdin.flush()
        yield {"workers": [json.loads(self._line_of(worker)) for worker in self._workers]}

    def _line_of(self, worker: subprocess.Popen[str]) -> str:
        assert worker.stdout
        assert worker.stderr
        if line := worker.stdout.readline():
            return line
        errors = worker.stderr.read().strip().splitlines() or ["it printed nothing"]
        raise RunError(f"a worker that computes has failed: {errors[-1]}")


def _describe(order: dict[str, Any]) -> Answers:
    yield describe.description(order)


def _load(order: dict[str, Any]) -> Answers:
    yield describe.load(order["interface"])


def _disk(order: dict[str, Any]) -> Answers:
    folder = describe.storage_of(Path(order["folder"]))
    yield {"bytes_per_s": disk.write_speed(folder)}


def _clock(order: dict[str, Any]) -> Answers:
    yield {"heard_at": order["heard_at"], "answered_at": time.time()}


def _listen(order: dict[str, Any]) -> Answers:
    measuring = bandwidth.receive(order["address"], order["secret"], order["several"])
    yield {"port": next(measuring)}
    try:
        next(measuring)
    except StopIteration as done:
        yield done.value._asdict()


def _send(order: dict[str, Any]) -> Answers:
    trip_s = bandwidth.send(
        *(order[key] for key in ("own", "address", "port", "secret", "several"))
    )
    yield {"round_trip_s": trip_s}


def main() -> None:
    ignore_signals()
    orders: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_read, args=(orders,), name="orders", daemon=True).start()
    gemm = Gemm()
    does: dict[str, Callable[[dict[str, Any]], Answers]] = {
        "describe": _describe,
        "load": _load,
        "disk": _disk,
        "clock": _clock,
        "listen": _listen,
        "send": _send,
        "warm up": gemm.warm_up,
        "wait": gemm.wait,
        "compute": gemm.measure,
    }
    while True:
        order = orders.get()
        try:
            for answer in does[order["order"]](order):
                send_message(sys.stdout, answer | {"number": order["number"]})
        except DragomanError as error:
            send_message(sys.stdout, {"error": str(error), "number": order["number"]})
        except Exception as error:  # one order that fails is a fact about this host, not the end
            words = f"{order['order']} failed: {type(error).__name__}: {error}"
            send_message(sys.stdout, {"error": words, "number": order["number"]})


def _read(orders: "queue.Queue[dict[str, Any]]") -> None:
    rest = b""
    while select.select([0], [], [], SILENCE_S)[0] and (more := os.read(0, 1 << 16)):
        heard_at = time.time()
        *lines, rest = (rest + more).split(b"\n")
        for line in lines:
            order = json.loads(line)
            if order["order"] != "alive":
                orders.put(order | {"heard_at": heard_at})
    os._exit(0)


if __name__ == "__main__":
    main()
