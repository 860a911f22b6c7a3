"""A Dask cluster of real processes, with faults put into its workers.

with dask_scheduler(tmp_path) as scheduler, dask_workers(scheduler, 2, kill_in=["clean"]):
    prepare(config, lambda plan: dask_workers(scheduler.address, plan))
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from processes import wait_until

FAULTS = Path(__file__).parent / "dask_faults.py"


@dataclass
class Scheduler:
    process: subprocess.Popen[bytes]
    address: str


def command(program: str, *arguments: object) -> list[str]:
    return [sys.executable, "-m", f"distributed.cli.{program}", *map(str, arguments)]


@contextmanager
def dask_scheduler(folder: Path, host: str = "127.0.0.1", port: int = 0) -> Iterator[Scheduler]:
    file = folder / "scheduler.json"
    file.unlink(missing_ok=True)
    words = command("dask_scheduler", "--host", host, "--port", port, "--no-dashboard")
    with ended([*words, "--scheduler-file", file], folder / "scheduler.log") as process:
        wait_until(lambda: address_in(file) or process.poll() is not None)
        yield Scheduler(process, address_in(file))


def address_in(file: Path) -> str:
    with suppress(OSError, ValueError):
        return json.loads(file.read_text())["address"]
    return ""


@contextmanager
def dask_workers(
    scheduler: str,
    count: int,
    folder: Path,
    kill_in: Sequence[str] = (),
    delay_s: float = 0,
    is_shared: bool = True,
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """`kill_in`: a worker dies in each of these stages, once; its nanny starts another.
    Unless it `is_shared`, none sees the files of this machine."""
    flags = folder / "flags"
    flags.mkdir(exist_ok=True)
    env = os.environ | {
        "FAULTS_KILL_IN": ",".join(kill_in),
        "FAULTS_FLAGS": str(flags),
        "FAULTS_DELAY_S": str(delay_s),
        "FAULTS_IS_SHARED": str(is_shared),
    }
    with ExitStack() as opened:
        yield [
            opened.enter_context(
                ended(
                    [
                        *command("dask_worker", scheduler, "--nthreads", 1, "--no-dashboard"),
                        *("--preload", str(FAULTS), "--local-directory", str(folder)),
                        *("--death-timeout", "20"),
                    ],
                    folder / f"worker-{number}.log",
                    env,
                )
            )
            for number in range(count)
        ]


@contextmanager
def ended(
    words: Sequence[str], log: Path, env: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    with (
        log.open("wb") as file,
        subprocess.Popen(words, stdout=file, stderr=subprocess.STDOUT, env=env) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()  # a nanny ends its worker
            end = time.monotonic() + 10
            while process.poll() is None and time.monotonic() < end:
                time.sleep(0.05)
            process.kill()
