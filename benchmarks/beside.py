"""What evaluations take from training: while it stands still (inline), and beside it.

    python benchmarks/beside.py [--recipe NAME] [--set KEY=VALUE] [--rounds N] [--threads N]

The same run with `evaluation.beside` off and on, in turns, so that whatever else the machine does
falls on both alike. Training has `--threads` threads, by default all cores but one: that one is
idle, and is what an evaluation beside gets. Nothing is asserted.

Between the first step and the last lie the steps and all else: evaluations, saves, records. The
evaluation of the last step is inline in both, since nothing is left that could go on beside it.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from dragoman.config import load_config
from dragoman.preparation import prepare
from dragoman.rundir import RunDir
from dragoman.telemetry.events import Evaluated, Stamped, StepDone
from dragoman.telemetry.read.events import read_events

INLINE, BESIDE = "inline", "beside"
# More held-out sentences than the demo has, and evaluations as close as real runs have them.
OF_THE_DEMO = [
    'data.validation=[{kind="phrasebook",pairs=1000}]',
    "training.steps=900",
    "evaluation.every_steps=150",
    "evaluation.train_sample_pairs=300",
]


class Figures(NamedTuple):
    """Of one run, from its first step to its last."""

    wall_s: float
    steps_s: float
    evaluations: int
    """But that of the last step."""
    stood_still_s: float
    """In which training did nothing but evaluate."""
    step_alone_s: float
    """Median of the steps without a process beside them."""
    step_beside_s: float | None
    """Median of those with one; None: there was none."""
    beside_s: float
    """How long such processes ran."""
    bleu: dict[int, float]
    cpu_s: float = 0.0
    """Of all processes, the start included."""

    @property
    def taken_s(self) -> float:
        """Per evaluation, from training: all that was not steps."""
        return (self.wall_s - self.steps_s) / max(1, self.evaluations)


def figures_of(recorded: Sequence[Stamped]) -> Figures:
    """Returns the figures of the events of rank 0, in order of time."""
    steps = [(s.monotonic_at, s.event) for s in recorded if isinstance(s.event, StepDone)]
    evaluated = [(s.monotonic_at, s.event) for s in recorded if isinstance(s.event, Evaluated)]
    last_at, last = steps[-1]
    first_at = steps[0][0] - steps[0][1].step_s
    beside = [(at - e.beside_s, at) for at, e in evaluated if e.beside_s is not None]
    is_beside = [
        any(begin < at - s.step_s and at < end for begin, end in beside) for at, s in steps
    ]
    with_one, alone = (
        [s.step_s for (_, s), found in zip(steps, is_beside, strict=True) if found == wanted]
        for wanted in (True, False)
    )
    return Figures(
        wall_s=last_at - first_at,
        steps_s=sum(step.step_s for _, step in steps),
        evaluations=len({e.step for _, e in evaluated if e.step < last.step}),
        stood_still_s=sum(e.seconds for at, e in evaluated if at <= last_at),
        step_alone_s=statistics.median(alone),
        step_beside_s=statistics.median(with_one) if with_one else None,
        beside_s=sum(end - begin for begin, end in beside),
        bleu={e.step: e.bleu for _, e in evaluated if e.bleu is not None},
    )


def train(recipe: str, overrides: Sequence[str], run: Path, threads: int) -> Figures:
    command = [sys.executable, "-m", "dragoman", "train", recipe, "--run", str(run), "--skip-check"]
    for override in overrides:
        command += ["--set", override]
    process = subprocess.Popen(
        command,
        env=os.environ | {"OMP_NUM_THREADS": str(threads)},
        stdout=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"the run in {run} has failed with exit code {process.returncode}")
    recorded = [each.stamped for each in read_events(RunDir(run), rank=0)]
    return figures_of(recorded)._replace(cpu_s=usage.ru_utime + usage.ru_stime)


def table(found: dict[str, list[Figures]]) -> str:
    def row(name: str, of: list[float | None], digits: int) -> str:
        known = [value for value in of if value is not None]
        if not known:
            return "-"
        middle = statistics.median(known)
        return f"{middle:.{digits}f} ({min(known):.{digits}f} to {max(known):.{digits}f})"

    rows = {
        "taken from training by an evaluation, s": (lambda f: f.taken_s, 3),
        "of that standing still, s": (lambda f: f.stood_still_s / max(1, f.evaluations), 3),
        "first step to last, s": (lambda f: f.wall_s, 1),
        "step, median, ms": (lambda f: 1e3 * f.step_alone_s, 2),
        "step beside a process, median, ms": (
            lambda f: None if f.step_beside_s is None else 1e3 * f.step_beside_s,
            2,
        ),
        "a process beside, s": (lambda f: f.beside_s / max(1, f.evaluations) or None, 2),
        "CPU time of all processes, s": (lambda f: f.cpu_s, 1),
        "last BLEU but one": (lambda f: f.bleu[sorted(f.bleu)[-2]], 2),
    }
    lines = [f"| median (least to most) | {' | '.join(found)} |", "|---|---|---|"]
    for name, (figure, digits) in rows.items():
        cells = [row(name, [figure(each) for each in runs], digits) for runs in found.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    options = _arguments()
    overrides = [*(OF_THE_DEMO if options.recipe == "demo" else []), *options.set]
    found: dict[str, list[Figures]] = {INLINE: [], BESIDE: []}
    loads = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(options.keep or folder)
        overrides.append(f"data.prepared={root / 'prepared'}")
        prepare(load_config(options.recipe, overrides))
        for number in range(1, options.rounds + 1):
            # Each is the first of every second round.
            for name in (INLINE, BESIDE) if number % 2 else (BESIDE, INLINE):
                loads.append(os.getloadavg()[0])
                set_to = f"evaluation.beside={str(name == BESIDE).lower()}"
                run = root / f"{name}-{number}"
                begun = time.perf_counter()
                figures = train(options.recipe, [*overrides, set_to], run, options.threads)
                found[name].append(figures)
                print(
                    f"round {number}, {name}: {time.perf_counter() - begun:.1f} s, "
                    f"{figures.taken_s:.3f} s taken by each of {figures.evaluations} evaluations, "
                    f"BLEU {', '.join(f'{bleu:.2f}' for _, bleu in sorted(figures.bleu.items()))}",
                    flush=True,
                )
    scores = [figures.bleu for runs in found.values() for figures in runs]
    same = "the same" if all(each == scores[0] for each in scores) else "NOT the same"
    print(
        f"\n{os.cpu_count()} cores, torch {torch.__version__}, {options.threads} thread(s) of "
        f"training, recipe {options.recipe}, {options.rounds} rounds in turns, load average of the "
        f"minute before each run {min(loads):.1f} to {max(loads):.1f}; all BLEU scores of all runs "
        f"are {same}\n"
    )
    print(table(found))
    saved = [
        inline.wall_s / beside.wall_s
        for inline, beside in zip(found[INLINE], found[BESIDE], strict=True)
    ]
    print(f"\nfirst step to last, inline over beside, by round: {[round(x, 3) for x in saved]}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--recipe", default="demo")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--keep", help="leave the runs in this folder")
    return parser.parse_args()


if __name__ == "__main__":
    main()
