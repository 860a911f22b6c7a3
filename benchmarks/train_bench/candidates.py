"""Runs one candidate for some steps and returns its measurement.

Two kinds: plain loops around a model, which take turns in one process, on the same tensors; and
whole tools, each of which trains from text with a loader of its own in a process of its own.
"""

import json
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.rundir import RunDir
from dragoman.telemetry.events import StepDone
from dragoman.telemetry.read.events import read_events
from train_bench.measurement import (
    Gemm,
    Measurement,
    StepEnd,
    measurement_of,
    read_loop_work,
    read_step_ends,
    work_between,
)
from train_bench.task import (
    BATCH_TOKENS,
    FILTER,
    HEADS,
    LABEL_SMOOTHING,
    LAYERS,
    THREADS,
    VOCABULARY,
    WARM_UP_STEPS,
    WIDTH,
    Setting,
)
from train_bench.text import Text, training_overrides
from train_bench.watch import Watched, run_watched

PEERS = Path(__file__).parent / "peers"
SOURCE = Path(__file__).parents[2] / "src"
LIMIT_S = 600.0
STEPS_ALONE = 2
"""Of a loop alone in a process, to measure its memory and its start."""
GEMM_S = 2.0


@dataclass(frozen=True)
class Bench:
    """What all measurements share."""

    text: Text
    scratch: Path
    steps: int
    """Counted ones, after the warm-up."""

    @property
    def all_steps(self) -> int:
        return WARM_UP_STEPS + self.steps


def measure_gemm(python: Path, scratch: Path) -> Gemm:
    output = scratch / "gemm.txt"
    command = [str(python), str(PEERS / "gemm.py"), str(THREADS), str(GEMM_S)]
    run_watched(command, output, LIMIT_S, threads_of(THREADS))
    flops_per_s, processors = output.read_text().split()[-2:]
    return Gemm(float(flops_per_s), float(processors))


def measure_loops(
    bench: Bench, python: Path, names: Sequence[str], setting: Setting
) -> dict[str, Measurement]:
    """Measures speed with all loops in one process, then start and memory of each one alone."""
    _run_loops(bench, python, names, setting, bench.all_steps)
    work = read_loop_work(_log(bench).read_text().splitlines(), WARM_UP_STEPS)
    results = {}
    for name in names:
        watched = _run_loops(bench, python, [name], setting, STEPS_ALONE)
        first = read_step_ends(_log(bench).read_text().splitlines())[0]
        results[name] = measurement_of(
            work[name],
            watched.usage[-1].peak_bytes,
            first.at - watched.started_at,
            bench.text.batch_flops,
        )
    return results


def measure_tool(bench: Bench, python: Path, name: str, setting: Setting) -> Measurement:
    """Measures a whole tool, by the ends of its steps."""
    if name == "dragoman":
        watched, steps = _run_dragoman(bench, setting)
    else:
        watched, steps = _run_peer(bench, python, name, setting)
    work = work_between(steps, watched.usage, WARM_UP_STEPS, bench.steps)
    return measurement_of(
        work,
        watched.usage[-1].peak_bytes,
        steps[0].at - watched.started_at,
        bench.text.flops_per_token,
    )


def _run_loops(
    bench: Bench, python: Path, names: Sequence[str], setting: Setting, steps: int
) -> Watched:
    job = _write_job(bench, setting, steps, names)
    command = [str(python), str(PEERS / "loops.py"), str(job)]
    path = {"PYTHONPATH": str(SOURCE)}
    return run_watched(command, _output(bench, "loops"), LIMIT_S, threads_of(THREADS) | path)


def _run_peer(
    bench: Bench, python: Path, name: str, setting: Setting
) -> tuple[Watched, list[StepEnd]]:
    job = _write_job(bench, setting, bench.all_steps)
    command = [str(python), str(PEERS / f"run_{name}.py"), str(job)]
    # A path to Dragoman's own packages must not reach an environment of another tool.
    outside = {"PYTHONPATH": ""}
    # Marian makes its own threads, each of which would start as many for its products.
    threads = threads_of(1 if name == "marian" else THREADS)
    watched = run_watched(command, _output(bench, name), LIMIT_S, threads | outside)
    return watched, read_step_ends(_log(bench).read_text().splitlines())


def _run_dragoman(bench: Bench, setting: Setting) -> tuple[Watched, list[StepEnd]]:
    run = bench.scratch / "run"
    shutil.rmtree(run, ignore_errors=True)
    overrides = training_overrides(bench.text, setting, bench.all_steps)
    command = train_command(bench.text.recipe, run, "--workers", "1", *overrides)
    output = _output(bench, "dragoman")
    watched = run_watched(command, output, LIMIT_S, threads_of(THREADS) | own_source())
    return watched, steps_of_run(run)


def train_command(recipe: Path, run: Path, *options: str) -> list[str]:
    command = [sys.executable, "-m", "dragoman", "train", str(recipe), "--run", str(run)]
    return [*command, *options]


def own_source() -> dict[str, str]:
    """Returns the variable by which Python finds the source beside this benchmark."""
    return {"PYTHONPATH": os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])}


def steps_of_run(run: Path) -> list[StepEnd]:
    """Reads the ends of steps from the events that a run has recorded."""
    recorded = read_events(RunDir(run), rank=0, kinds={StepDone})
    return [
        StepEnd(stamped.monotonic_at, stamped.event.tokens)
        for _, _, stamped in recorded
        if isinstance(stamped.event, StepDone)
    ]


def _write_job(bench: Bench, setting: Setting, steps: int, loops: Sequence[str] = ()) -> Path:
    """Writes what the scripts in `peers` read."""
    _log(bench).unlink(missing_ok=True)
    job = bench.scratch / "job.json"
    content = {
        "text": str(bench.text.folder),
        "scratch": str(bench.scratch),
        "log": str(_log(bench)),
        "loops": list(loops),
        "pairs": bench.text.pairs,
        "steps": steps,
        "threads": THREADS,
        "vocabulary": VOCABULARY,
        "layers": LAYERS,
        "width": WIDTH,
        "heads": HEADS,
        "filter": FILTER,
        "batch_tokens": BATCH_TOKENS,
        "label_smoothing": LABEL_SMOOTHING,
        "residual": setting.residual,
        "attention": setting.attention,
        "activation": setting.activation,
        "precision": setting.precision,
    }
    job.write_text(json.dumps(content))
    return job


def _log(bench: Bench) -> Path:
    return bench.scratch / "steps.jsonl"


def _output(bench: Bench, name: str) -> Path:
    return bench.scratch / f"{name}.log"


def threads_of(count: int) -> dict[str, str]:
    """Returns the environment of a process whose products use so many threads."""
    return {"OMP_NUM_THREADS": str(count), "MKL_NUM_THREADS": str(count)}
