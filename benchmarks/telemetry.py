"""What telemetry costs a step, whether its memory grows, and how long a long run takes to open.

    python benchmarks/telemetry.py [--seconds N] [--events N] [--steps N]

Overhead: the same work with and without telemetry, in turns, and the time that the training thread
itself spends on timing a step's parts and handing the event over. The work is many small
operations, as a framework's are, since those are what a thread beside them could hold up. Telemetry
is all that is on by default: file, status, TensorBoard, sensors once a second.
"""

import argparse
import contextlib
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
import psutil

from dragoman.rundir import RunDir
from dragoman.telemetry.events import (
    AttemptStarted,
    ClockOffset,
    SensorReading,
    Stamped,
    StepDone,
    to_line,
)
from dragoman.telemetry.export.tensorboard import TensorBoardFiles
from dragoman.telemetry.record.sampler import Makers, Sampler, sampling, sensors_of_host
from dragoman.telemetry.record.status import StatusFile
from dragoman.telemetry.record.writer import CAPACITY, EventWriter
from dragoman.telemetry.sensors.sensor import AbsentError, Sensor

STEP_S = 0.05
PARTS = (
    "data",
    "forward",
    "backward",
    "exposed communication",
    "optimizer",
    "evaluation",
    "checkpoint",
    "rest",
)
COUNTS: dict[str, float] = {
    "source_tokens": 5998,
    "target_tokens": 6184,
    "positions": 12690,
    "sequences": 238,
    "flops": 2277086134272,
}
BLOCK = 20
"""Steps with or without telemetry, in turns."""

READ = """
import resource, sys, time
from pathlib import Path
begun = time.perf_counter()
from dragoman.rundir import RunDir
from dragoman.telemetry.events import SensorReading, StepDone
from dragoman.telemetry.read.reader import read_tables
tables = read_tables(RunDir(Path(sys.argv[1])))
wall_s = time.perf_counter() - begun
peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(len(tables[StepDone]), len(tables[SensorReading]), wall_s, time.process_time(), peak_kb)
"""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=80, help="of the overhead part")
    arguments.add_argument("--events", type=int, default=1_000_000, help="of the memory part")
    arguments.add_argument("--steps", type=int, default=300_000, help="of the run to open")
    arguments.add_argument("--ranks", type=int, default=4, help="of the run to open")
    options = arguments.parse_args()
    load = os.getloadavg()[0]
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"load of others {load:.1f}\n"
    )
    with tempfile.TemporaryDirectory() as name:
        if options.seconds:
            show_overhead(Path(name) / "overhead", options.seconds)
        if options.events:
            show_memory(Path(name) / "memory", options.events)
        if options.steps:
            show_opening(RunDir(Path(name) / "opening"), options.steps, options.ranks)


def show_overhead(root: Path, seconds: float) -> None:
    run = RunDir(root)
    run.root.mkdir()
    operations = calibrated()
    blocks: list[float] = []
    handing_s: list[float] = []
    handing_cpu_s: list[float] = []
    beside_s = 0.0
    with ExitStack() as at_end:
        files = TensorBoardFiles(run.tensorboard, "host")
        at_end.callback(files.close)
        events = EventWriter(run.events_of(1, 0), [StatusFile(run), files])
        at_end.callback(events.close)
        makers = made_before(sensors_of_host(run.root, {0: os.getpid()}))
        for block in range(max(9, round(seconds / STEP_S / BLOCK)) | 1):
            recorded = block % 2 == 1
            step_s: list[float] = []
            process_s, thread_s = time.process_time(), time.thread_time()
            with sampling(events.emit, makers, "host", 1.0 if recorded else 0.0):
                for number in range(BLOCK):
                    begun = time.perf_counter()
                    work(operations)
                    if recorded:
                        wall, cpu = time.perf_counter(), time.thread_time()
                        events.emit(anatomy(block * BLOCK + number, begun))
                        handing_s.append(time.perf_counter() - wall)
                        handing_cpu_s.append(time.thread_time() - cpu)
                    step_s.append(time.perf_counter() - begun)
            blocks.append(statistics.mean(step_s))
            if recorded:
                beside_s += time.process_time() - process_s - (time.thread_time() - thread_s)
    plain = statistics.median(blocks[0::2])
    rows = {
        "a step without telemetry, median": plain,
        "timing and handing over, wall, mean": statistics.mean(handing_s),
        "timing and handing over, wall, largest": max(handing_s),
        "timing and handing over, CPU of the training thread, mean": statistics.mean(handing_cpu_s),
        "CPU of the threads beside it, mean": beside_s / len(handing_s),
    }
    print(f"| {len(handing_s)} steps with and as many without, in turns | ms | share of a step |")
    print("|---|---|---|")
    for name, taken_s in rows.items():
        print(f"| {name} | {1000 * taken_s:.3f} | {100 * taken_s / plain:.2f} % |")
    print(
        f"\na block with telemetry, against its two neighbors without: {against(blocks, 1)}\n"
        f"a block without, against the two nearest without (noise): {against(blocks, 2)}\n"
        f"events dropped: {events.dropped}\n"
    )


def made_before(makers: Makers) -> Makers:
    """Sensors that need not be made anew for each block; those that are absent are left out."""
    made: dict[str, Callable[[], Sensor]] = {}
    for name, make in makers.items():
        with contextlib.suppress(AbsentError):
            sensor = make()
            made[name] = partial(lambda sensor: sensor, sensor)
    return made


def against(blocks: list[float], distance: int) -> str:
    places = range(2 if distance == 2 else 1, len(blocks) - distance, 2)
    ratios = [2 * blocks[n] / (blocks[n - distance] + blocks[n + distance]) for n in places]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"median {middle:.3f}, half of them from {low:.3f} to {high:.3f}"


def calibrated() -> int:
    """So many small operations that they take as long as a step when nothing is in their way."""
    taken_s = []
    for _ in range(10):
        begun = time.perf_counter()
        work(500)
        taken_s.append(time.perf_counter() - begun)
    return max(1, round(500 * STEP_S / min(taken_s)))


def work(operations: int) -> None:
    matrix = np.ones((48, 48), dtype=np.float32)
    for _ in range(operations):
        matrix = np.tanh(matrix @ matrix)


def anatomy(step: int, begun: float) -> StepDone:
    """As many looks at the clock as a step has parts, and the event made of them."""
    times = [begun, *(time.perf_counter() for _ in PARTS)]
    parts = {
        part: after - before for part, before, after in zip(PARTS, times, times[1:], strict=False)
    }
    return StepDone(
        *(step, step / 4321, 3 + 1 / (step + 1), 25_000, 1e-3, 0.7, True, 0.05, parts),
        counts=COUNTS,
        memory_peak_bytes=1.1e10,
    )


def show_memory(root: Path, count: int) -> None:
    process = psutil.Process()
    events = EventWriter(root / "events.jsonl", [])
    sizes_mb: list[float] = []
    begun = time.perf_counter()
    for number in range(count):
        events.emit(anatomy(number, begun))
        if number % 1000 == 0:
            while len(events._waiting) > CAPACITY // 2:
                time.sleep(0.001)
        if number % (count // 10) == count // 10 - 1:
            sizes_mb.append(process.memory_info().rss / 1e6)
    events.close()
    rate = count / (time.perf_counter() - begun)
    print(
        f"{count:,} events in one file, {rate:,.0f} a second, dropped {events.dropped}: resident "
        f"memory after each tenth, MB: {', '.join(f'{size:.0f}' for size in sizes_mb)}\n"
    )


def show_opening(run: RunDir, steps: int, ranks: int) -> None:
    write_run(run, steps, ranks)
    files = list(run.events.iterdir())
    print(
        f"{steps:,} steps on {ranks} ranks: {sum(f.stat().st_size for f in files) / 1e6:.0f} MB\n"
    )
    print("| opened | steps | sensor readings | wall, s | CPU, s | peak memory, MB |")
    print("|---|---|---|---|---|---|")
    for repeat in range(3):
        done = subprocess.run(
            [sys.executable, "-c", READ, str(run.root)], capture_output=True, text=True, check=True
        )
        rows, readings, wall_s, cpu_s, peak_kb = done.stdout.split()
        print(
            f"| {repeat + 1} | {int(rows):,} | {int(readings):,} | {float(wall_s):.2f} "
            f"| {float(cpu_s):.2f} | {int(peak_kb) / 1000:.0f} |",
            flush=True,
        )


def write_run(run: RunDir, steps: int, ranks: int) -> None:
    """Two ranks a host; readings as this machine's sensors give them, one a second."""
    chance = random.Random(1)
    read: list[SensorReading] = []
    Sampler(
        lambda event: read.append(event) if isinstance(event, SensorReading) else None,
        sensors_of_host(Path.cwd(), {0: os.getpid(), 1: os.getpid()}),
        "host",
    ).sample(0.0)
    run.events.mkdir(parents=True)
    for rank in range(ranks):
        at, next_reading_at = 0.0, 0.0
        with run.events_of(1, rank).open("w", encoding="utf-8") as file:
            host = f"host-{rank // 2}"
            for event in (
                AttemptStarted(1, rank, ranks, host, "cpu", 1),
                ClockOffset(host, 0.0, 0.0, 1e-4),
            ):
                file.write(to_line(Stamped(1.7e9, 0.0, event)))
            for number in range(1, steps + 1):
                parts = {part: chance.random() * STEP_S / 4 for part in PARTS}
                seconds = sum(parts.values())
                at += seconds
                if rank % 2 == 0 and at >= next_reading_at:
                    next_reading_at = at + 1
                    file.write(to_line(Stamped(1.7e9 + at, at, read[0])))
                done = StepDone(
                    step=number,
                    epoch=number / 4321,
                    loss=3 + chance.random(),
                    tokens=25_000 + chance.randrange(500),
                    learning_rate=chance.random() / 1000,
                    gradient_norm=chance.random(),
                    updated=True,
                    step_s=seconds,
                    parts_s=parts,
                    counts=COUNTS,
                    memory_peak_bytes=1.1e10,
                )
                file.write(to_line(Stamped(1.7e9 + at, at, done)))


if __name__ == "__main__":
    main()
