"""What watching costs: opening a long run, an update, doing nothing, and the training beside it.

    python benchmarks/watch.py [--steps N] [--ranks N] [--idle SECONDS] [--rounds N]

A run is written as ranks write it (benchmarks/telemetry.py), and opened by a process that has
imported nothing yet. Its figures are those of the watcher alone; the process that makes the reports
has a row of its own. Then a real training, with and without a watcher beside it, in turns. Nothing
is asserted.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from telemetry import write_run

from dragoman.config import load_config
from dragoman.preparation import prepare
from dragoman.recipes import find_recipe
from dragoman.rundir import RunDir
from dragoman.telemetry.events import StepDone
from dragoman.telemetry.read.events import read_events

ADDED_LINES = 20
"""Of each rank before each update: what steps of 50 ms leave in a second."""
UPDATES = 20

OPEN = """
import json, resource, sys, time
begun = time.perf_counter()
from pathlib import Path
from dragoman.rundir import RunDir
from dragoman.watch.run_watch import RunWatch
import_s = time.perf_counter() - begun
folder, idle_s, updates, lines = sys.argv[1], *map(float, sys.argv[2:])
run = RunDir(Path(folder))
watch = RunWatch(run)
before = time.process_time()
watch.refresh()
found = {"import_s": import_s, "first_s": time.perf_counter() - begun,
         "first_cpu_s": time.process_time() - before}
while True:
    watched = watch.refresh()
    if watched.report or watched.now.trouble:
        break
    time.sleep(0.05)
found["report_s"] = time.perf_counter() - begun
found["report_cpu_s"] = watch._analysis._cpu_s
found["trouble"] = watched.now.trouble
watch._analysis._cpu_s = 1e9  # no further report
files = sorted(run.events.iterdir())
tails = {}
for path in files:
    with path.open("rb") as file:
        file.seek(-200_000, 2)
        tails[path] = file.read().splitlines(keepends=True)[1:]
found["updates_s"] = []
for number in range(int(updates)):
    for path, own in tails.items():
        with path.open("ab") as file:
            file.writelines(own[: int(lines)])
    before = time.process_time()
    watch.refresh()
    found["updates_s"].append(time.process_time() - before)
before, begun_idle = time.process_time(), time.perf_counter()
while time.perf_counter() - begun_idle < idle_s:
    time.sleep(1.0)
    watch.refresh()
passed_s = time.perf_counter() - begun_idle
found["idle_share"] = (time.process_time() - before) / passed_s if passed_s else 0.0
watch.close()
found["peak_kb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps(found))
"""
BESIDE = """
import sys, time
from pathlib import Path
from dragoman.rundir import RunDir
from dragoman.watch.run_watch import RunWatch
watch = RunWatch(RunDir(Path(sys.argv[1])))
while True:
    watch.refresh()
    time.sleep(1.0)
"""


def main() -> None:
    options = _arguments()
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"load of others {os.getloadavg()[0]:.1f}\n"
    )
    with tempfile.TemporaryDirectory() as name:
        if options.steps:
            show_opening(RunDir(Path(name) / "long"), options)
        if options.rounds:
            show_training(Path(name), options)


def show_opening(run: RunDir, options: argparse.Namespace) -> None:
    write_run(run, options.steps, options.ranks)
    run.config.write_text(find_recipe("demo").read_text(encoding="utf-8"), encoding="utf-8")
    sizes = sum(path.stat().st_size for path in run.events.iterdir())
    done = subprocess.run(
        [sys.executable, "-c", OPEN, str(run.root)]
        + [str(value) for value in (options.idle, UPDATES, ADDED_LINES)],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    if found["trouble"]:
        sys.exit(found["trouble"])
    updates_ms = [1000 * value for value in found["updates_s"]]
    print(f"{options.steps:,} steps on {options.ranks} ranks, {sizes / 1e6:.0f} MB\n")
    print("| figure | value |\n|---|---|")
    for what, value in (
        ("until the first screen, s", f"{found['first_s']:.2f}"),
        ("of that imports, s", f"{found['import_s']:.2f}"),
        ("of that reading, CPU, ms", f"{1000 * found['first_cpu_s']:.0f}"),
        ("until the first report, s", f"{found['report_s']:.2f}"),
        ("the process that makes it, CPU, s", f"{found['report_cpu_s']:.2f}"),
        (
            f"an update with {ADDED_LINES} new lines a rank, CPU, ms: median (most)",
            f"{statistics.median(updates_ms):.1f} ({max(updates_ms):.1f})",
        ),
        ("share of a core while nothing happens, %", f"{100 * found['idle_share']:.2f}"),
        ("peak memory of the watcher, MB", f"{found['peak_kb'] / 1000:.0f}"),
    ):
        print(f"| {what} | {value} |")
    print(flush=True)


def show_training(root: Path, options: argparse.Namespace) -> None:
    settings = [
        f"training.steps={options.training_steps}",
        f"evaluation.every_steps={options.training_steps}",
        f"data.prepared={root / 'prepared'}",
    ]
    prepare(load_config("demo", settings))
    ratios, shares = [], []
    print(
        "| round | step alone, ms | step while watched, ms | ratio "
        "| CPU of the watcher and its reports, % of a core |\n|---|---|---|---|---|"
    )
    for number in range(1, options.rounds + 1):
        found = {}
        # Each is the first of every second round.
        for is_watched in (False, True) if number % 2 else (True, False):
            run = RunDir(root / f"{'watched' if is_watched else 'alone'}-{number}")
            found[is_watched], share = step_s_of(run, settings, is_watched)
            shares += [share] if is_watched else []
        ratios.append(found[True] / found[False])
        print(
            f"| {number} | {1000 * found[False]:.2f} | {1000 * found[True]:.2f} "
            f"| {ratios[-1]:.3f} | {100 * shares[-1]:.1f} |",
            flush=True,
        )
    print(
        f"\nmedians: ratio {statistics.median(ratios):.3f}, "
        f"CPU of the watcher {100 * statistics.median(shares):.1f} % of a core"
    )


def step_s_of(run: RunDir, settings: Sequence[str], is_watched: bool) -> tuple[float, float]:
    """Trains, and returns the mean time of a step, without the first ones, and the share of a core
    that the watcher took, its processes that make reports included."""
    command = [sys.executable, "-m", "dragoman", "train", "demo", "--run", str(run.root)]
    # As many workers as the demo has micro-batches: on two cores none is left for the watcher.
    command += ["--workers", "2"]
    for setting in settings:
        command += ["--set", setting]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as training:
        watcher = None
        if is_watched:
            while not run.config.exists() and training.poll() is None:
                time.sleep(0.05)
            watcher = subprocess.Popen([sys.executable, "-c", BESIDE, str(run.root)])
        begun, share = time.perf_counter(), 0.0
        code = training.wait()
        if watcher:
            watched_s = time.perf_counter() - begun
            watcher.kill()
            _, status, usage = os.wait4(watcher.pid, 0)
            watcher.returncode = os.waitstatus_to_exitcode(status)
            share = (usage.ru_utime + usage.ru_stime) / watched_s
    if code:
        sys.exit(f"the run in {run.root} has failed with exit code {code}")
    steps = [
        recorded.stamped.event.step_s for recorded in read_events(run, rank=0, kinds=[StepDone])
    ]
    return statistics.mean(steps[len(steps) // 10 :]), share


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=300_000, help="of the run to open; 0: skip")
    parser.add_argument("--ranks", type=int, default=4, help="of the run to open")
    parser.add_argument("--idle", type=float, default=30, help="seconds in which nothing happens")
    parser.add_argument("--rounds", type=int, default=5, help="of trainings; 0: skip")
    parser.add_argument("--training-steps", type=int, default=600, help="of each training")
    return parser.parse_args()


if __name__ == "__main__":
    main()
