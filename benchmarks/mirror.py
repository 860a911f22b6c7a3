"""What uploading checkpoints takes from the gradients that travel over the same link.

    sudo python benchmarks/mirror.py [--rate 100mbit] [--steps N] [--save-every N] [--rounds N]

Two lab nodes train one run over links of one rate, and an S3 server (moto's, a process of its own
on the machine that the lab is on) is reached over the same links. The same run without a mirror,
with one that may use all of the link, and with one that is limited to a tenth of it, in turns, so
that whatever else the machine does falls on all alike; ratios are of runs of one round. All save
equally often. Nothing is asserted.

A run is counted from its first save to its last step. It does not wait for its last upload. The
server, too, needs processors: where they are few, a part of what an upload takes is theirs.
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil
from scaling_bench.bench import steps_by_rank
from scaling_bench.figures import Ranks, exposed_communication_s

from dragoman.lab import Lab, remove_lab
from dragoman.recipes import shipped_recipe
from dragoman.rundir import RunDir

BUCKET = "mirror"
LIMITED_SHARE = 0.1
"""Of the link, as docs/storage.md advises for a slow line."""
# It prints its port when it answers, and ends with the process that has started it.
_SERVER = """
import logging, sys
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(sys.argv[1], 0)
server.start()
print("port", server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


class Figures(NamedTuple):
    """Of the counted steps of one run."""

    step_s: float
    exposed_s: float
    """In a step, on average: what the rank that waits the least waits for gradients to travel."""
    stored_bytes: float
    """That the nodes have sent to the machine with the store in the whole run, headers and the
    records that every run sends home included."""


def counted(ranks: Ranks, after_step: int) -> tuple[float, float]:
    """Returns seconds a step and exposed seconds a step of those after a step."""
    lead = ranks[0]
    steps = [[each.done for each in of_rank[after_step:]] for of_rank in ranks.values()]
    if not steps[0]:
        raise ValueError(f"{len(lead)} steps, of which {after_step} are not counted")
    together = list(zip(*steps, strict=True))
    seconds = lead[-1].at - lead[after_step - 1].at
    return seconds / len(together), statistics.mean(map(exposed_communication_s, together))


def table(rounds: Sequence[dict[str, Figures]]) -> str:
    """Returns a row for each variant; the first one is what the others are compared with."""
    header = ["median (least to most)", "step, s", "exposed communication, s", "to the store, MB"]
    lines = [
        "| " + " | ".join([*header, "step against none", "exposed against none"]) + " |",
        "|" + "---|" * (len(header) + 2),
    ]
    first = next(iter(rounds[0]))
    for name in rounds[0]:
        own, base = ([each[which] for each in rounds] for which in (name, first))
        cells = [
            _spread([each.step_s for each in own], 3),
            _spread([each.exposed_s for each in own], 3),
            _spread([each.stored_bytes / 1e6 for each in own], 1),
            _spread([a.step_s / b.step_s for a, b in zip(own, base, strict=True)], 3),
            _spread(
                [a.exposed_s / max(1e-9, b.exposed_s) for a, b in zip(own, base, strict=True)], 2
            ),
        ]
        lines.append("| " + " | ".join([name, *cells]) + " |")
    return "\n".join(lines)


def main() -> None:
    options = _arguments()
    print(f"machine: {platform.processor() or platform.machine()}, {os.cpu_count()} processors, ")
    print(f"         {psutil.virtual_memory().total / 2**30:.0f} GB, Linux {platform.release()}")
    print(f"link:    {options.rate}, a save every {options.save_every} steps\n", flush=True)
    limit = int(LIMITED_SHARE * _bytes_per_s(options.rate))
    variants: dict[str, list[str]] = {
        "no mirror": [],
        "mirror, no limit": ["checkpoints.mirror_bytes_per_s=0"],
        f"mirror, {limit / 1e6:g} MB/s": [f"checkpoints.mirror_bytes_per_s={limit}"],
    }
    rounds = []
    with tempfile.TemporaryDirectory() as folder, _lab(options.rate) as lab:
        store = str(lab.layout.machine_address)
        with _server(store) as port:
            for number in range(options.rounds):
                rounds.append(
                    {
                        name: _measured(
                            Path(folder),
                            f"run-{number}-{place}",
                            settings,
                            lab,
                            f"http://{store}:{port}",
                            options,
                        )
                        for place, (name, settings) in enumerate(variants.items())
                    }
                )
                print(f"round {number + 1}: {rounds[-1]}", file=sys.stderr, flush=True)
    print(table(rounds))


def _measured(
    folder: Path,
    name: str,
    settings: Sequence[str],
    lab: Lab,
    endpoint: str,
    options: argparse.Namespace,
) -> Figures:
    run = folder / name
    changes = [
        f"training.steps={options.steps}",
        f"evaluation.every_steps={options.steps + 1}",
        "evaluation.translate_sentences=4",
        f"checkpoints.every_steps={options.save_every}",
        "checkpoints.mirror_wait_s=0",
        "schedule.kind=constant",
        *([f"checkpoints.mirror=s3://{BUCKET}/runs", *settings] if settings else []),
    ]
    before = _received_bytes(lab)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "dragoman", "train", shipped_recipe("demo").resolve()),
            *("--run", run, "--hosts", lab.hosts, "--skip-check"),
            *(word for change in changes for word in ("--set", change)),
        ],
        cwd=folder,  # where the data is prepared once for all runs
        env=os.environ | _variables(endpoint),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    figures = counted(steps_by_rank(RunDir(run)), options.save_every)
    return Figures(*figures, _received_bytes(lab) - before)


def _variables(endpoint: str) -> dict[str, str]:
    return {
        "AWS_ACCESS_KEY_ID": "benchmark",
        "AWS_SECRET_ACCESS_KEY": "of-no-worth",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "OMP_NUM_THREADS": "1",
    }


@contextmanager
def _lab(rate: str) -> Iterator[Lab]:
    name = f"mir-{os.getpid() % 10000}"
    try:
        yield Lab.up(name, 2, rate)
    finally:
        remove_lab(name)


@contextmanager
def _server(address: str) -> Iterator[int]:
    """Yields the port of an S3 server with an empty bucket."""
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER, address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"AWS_ENDPOINT_URL": ""},
    ) as process:
        assert process.stdin
        assert process.stdout
        try:
            lines = iter(process.stdout.readline, "")
            port = next((int(line.split()[1]) for line in lines if line.startswith("port ")), None)
            if port is None:
                sys.exit("the S3 server has not started; install moto[server] and moto[s3]")
            url = f"http://{address}:{port}/{BUCKET}"
            with urllib.request.urlopen(urllib.request.Request(url, method="PUT"), timeout=30):
                pass
            yield port
        finally:
            process.stdin.close()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()


def _received_bytes(lab: Lab) -> int:
    """Returns what the kernel has counted on the machine's end of its link to the lab."""
    return psutil.net_io_counters(pernic=True)[lab.layout.link].bytes_recv


def _bytes_per_s(rate: str) -> float:
    factors = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
    unit = next((unit for unit in factors if rate.endswith(unit)), None)
    if unit is None:
        sys.exit(f"--rate {rate}: write it like 100mbit")
    return float(rate.removesuffix(unit)) * factors[unit] / 8


def _spread(values: Sequence[float], digits: int) -> str:
    middle = statistics.median(values)
    return f"{middle:.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", default="100mbit", help="of each node's link")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--save-every", type=int, default=10, metavar="STEPS")
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
