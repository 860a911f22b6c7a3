"""How `dragoman serve` answers many clients, beside a plain FastAPI and CTranslate2 loop.

    python benchmarks/serve.py --run runs/demo

Both serve the same weights with the same beam, each in a process of its own, and take turns; a
ratio is the median of the ratios within a turn, so that other load on the machine hits both. Each
client, in this process, asks its next question when the last one is answered. At the end comes the
memory of our server over many requests.
"""

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from serve_bench.clients import Load, load

from dragoman.config import load_config
from dragoman.export.run import export_run
from dragoman.rundir import RunDir
from dragoman.shards.passport import PreparedData

OURS, PLAIN, REPLICAS = "dragoman serve", "FastAPI + CTranslate2", "the same, a replica a core"
CLIENTS = (1, 8, 64)
MB = 1e6


@contextmanager
def running(command: list[str], port: int) -> Iterator[psutil.Process]:
    """A server in a process of its own, once it answers."""
    threads = str(os.cpu_count())
    process = subprocess.Popen(
        [sys.executable, *command],
        env=os.environ | {"OMP_NUM_THREADS": threads},
        stdout=subprocess.DEVNULL,
    )
    try:
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health").close()
                break
            except (urllib.error.URLError, ConnectionError):
                if process.poll() is not None:
                    sys.exit(f"{command[0]} ended with code {process.returncode}")
                time.sleep(0.1)
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        return int(bound.getsockname()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, default=Path("runs/demo"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=1000, help="of a turn, at least")
    parser.add_argument("--memory-requests", type=int, default=10_000)
    options = parser.parse_args()

    config = load_config(RunDir(options.run).config)
    sentences, _ = PreparedData.open(config.prepared_folder).text("test")
    ports = {name: free_port() for name in (OURS, PLAIN, REPLICAS)}
    here = Path(__file__).parent
    decoding = config.decoding
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "model"
        export_run(RunDir(options.run), "ctranslate2", folder)
        ours = ["-m", "dragoman", "serve", str(options.run), "--port", str(ports[OURS])]
        ours += ["--client-requests", str(2 * max(CLIENTS))]
        plain, replicas = (
            [
                *(str(here / "serve_bench" / "plain_server.py"), str(folder), str(ports[name])),
                *(str(decoding.beam), str(decoding.length_penalty), str(count)),
            ]
            for name, count in ((PLAIN, 1), (REPLICAS, os.cpu_count()))
        )
        with (
            running(ours, ports[OURS]) as server,
            running(plain, ports[PLAIN]),
            running(replicas, ports[REPLICAS]),
        ):
            print(
                f"{options.run}, beam {decoding.beam}, {os.cpu_count()} cores, "
                f"{options.rounds} turns of {options.requests} requests"
            )
            for clients in CLIENTS:
                report(clients, measured(ports, sentences, clients, options))
            memory(server, ports[OURS], sentences, options.memory_requests)


def measured(
    ports: dict[str, int], sentences: list[str], clients: int, options: argparse.Namespace
) -> dict[str, list[Load]]:
    loads: dict[str, list[Load]] = {name: [] for name in ports}
    for port in ports.values():
        load(port, sentences, clients, 10 * clients)
    for number in range(options.rounds):
        names = list(ports)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            loads[name].append(load(ports[name], sentences, clients, options.requests))
    return loads


def report(clients: int, loads: dict[str, list[Load]]) -> None:
    print(f"\n{clients} client(s): requests per second, p50 and p99 in ms, medians of turns")
    for name, turns in loads.items():
        per_s = statistics.median(turn.per_s for turn in turns)
        p50, p99 = (
            statistics.median(turn.percentile_ms(percent) for turn in turns) for percent in (50, 99)
        )
        print(f"  {name:28} {per_s:9.1f} {p50:9.1f} {p99:9.1f}")
    for other in (PLAIN, REPLICAS):
        pairs = list(zip(loads[OURS], loads[other], strict=True))
        print(f"  {OURS} beside {other}, ratios within a turn:")
        print(f"    throughput {spread([ours.per_s / plain.per_s for ours, plain in pairs])}")
        for percent in (50, 99):
            ratios = [o.percentile_ms(percent) / p.percentile_ms(percent) for o, p in pairs]
            print(f"    p{percent} {spread(ratios)}")


def spread(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def memory(server: psutil.Process, port: int, sentences: list[str], requests: int) -> None:
    """Prints what the server holds after each fifth of many requests."""
    print(f"\nmemory of {OURS} over {requests} requests of 8 clients, MB:")
    for part in range(6):
        if part:
            load(port, sentences, 8, requests // 5)
        print(f"  {part * (requests // 5):7} {server.memory_info().rss / MB:9.1f}")


if __name__ == "__main__":
    main()
