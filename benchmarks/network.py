"""The same run on two nodes with a slower and slower link between them: where does the time go?

    sudo python benchmarks/network.py [--steps N] [--rates 1gbit 100mbit 10mbit]

Nodes are network namespaces of a lab, links have a real rate limit, training runs over ssh and
gloo. Bytes are counted by the kernel on the interface between the ranks, step by step, and beside
it the lab counts what its rate limiters let through, headers included.
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
from scaling_bench.bench import steps_by_rank
from scaling_bench.figures import exposed_communication_s

from dragoman.config import load_config
from dragoman.lab import Lab, remove_lab
from dragoman.model.size import size_of
from dragoman.recipes import shipped_recipe
from dragoman.rundir import RunDir

FIRST_STEPS = 3
"""Left out: the first ones warm up allocators and connections."""


def main() -> None:
    arguments = _arguments()
    recipe = shipped_recipe("demo").resolve()
    config = load_config(recipe)
    size = size_of(config.model, config.tokenizer.vocabulary)
    print(f"machine: {platform.processor() or platform.machine()}, {os.cpu_count()} processors, ")
    print(f"         {psutil.virtual_memory().total / 2**30:.0f} GB, Linux {platform.release()}")
    print(
        f"model:   {size.parameters:,} parameters, {size.gradient_bytes / 1e6:.2f} MB of gradients"
    )
    print(f"         {config.training.tokens_per_update:,} target tokens a step on 2 nodes\n")
    with tempfile.TemporaryDirectory() as folder:
        rows = [_measure(recipe, rate, arguments.steps, Path(folder)) for rate in arguments.rates]
    header = (
        "link",
        "step",
        "computing",
        "exposed communication",
        "bytes a step, predicted",
        "counted",
        "difference",
        "link use",
    )
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def _measure(recipe: Path, rate: str, steps: int, folder: Path) -> list[str]:
    name = f"net-{os.getpid() % 10000}"
    run = folder / rate
    changes = {
        "training.steps": steps,
        "evaluation.every_steps": steps + 1,
        "evaluation.translate_sentences": 4,
        "checkpoints.every_steps": steps + 1,
        "schedule.kind": "constant",
    }
    try:
        lab = Lab.up(name, 2, rate)
        done = subprocess.run(
            [
                *(sys.executable, "-m", "dragoman", "train", recipe),
                *("--run", run, "--hosts", lab.hosts, "--skip-check"),
                *(word for key, value in changes.items() for word in ("--set", f"{key}={value}")),
            ],
            cwd=folder,  # where the data is prepared once for all rates
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        remove_lab(name)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    ranks = steps_by_rank(RunDir(run))
    measured = [
        (one.done, other.done)
        for one, other in zip(ranks[0], ranks[1], strict=True)
        if one.done.step > FIRST_STEPS
    ]
    step_s = statistics.median(max(a.step_s, b.step_s) for a, b in measured)
    exposed_s = statistics.median(map(exposed_communication_s, measured))
    sent = statistics.mean(event.traffic_bytes["sent"] for pair in measured for event in pair)
    predicted = measured[0][0].traffic_bytes["predicted"]
    link_bits = _bits(rate)
    use = sent * 8 / statistics.mean(a.step_s for a, _ in measured) / link_bits
    return [
        rate.replace("bit", "bit/s"),
        f"{step_s:.2f} s",
        f"{(step_s - exposed_s) / step_s:.0%}",
        f"{exposed_s:.2f} s, {exposed_s / step_s:.0%}",
        f"{predicted / 1e6:.3f} MB",
        f"{sent / 1e6:.3f} MB",
        f"{sent / predicted - 1:+.1%}",
        f"{use:.0%}",
    ]


def _bits(rate: str) -> float:
    factors = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
    unit = next(unit for unit in factors if rate.endswith(unit))
    return float(rate.removesuffix(unit)) * factors[unit]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--rates", nargs="+", default=["1gbit", "100mbit", "10mbit"])
    return parser.parse_args()


if __name__ == "__main__":
    main()
