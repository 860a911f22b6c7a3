"""Measures opening, planning and loading of a recipe's data, alone in a process.

    python loading.py STEPS RECIPE [--set KEY=VALUE ...]

Prints one line of JSON. Nothing is trained: the process does what a worker does with data, and
the processor time of loading is that of the loader's thread, since the main thread only waits.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import torch

from dragoman.config import load_config
from dragoman.distributed.devices import memory_peak_bytes, reset_memory_peak
from dragoman.distributed.group import Group
from dragoman.shards.passport import PreparedData
from dragoman.training.data import open_training_data

BATCHES = 200
"""For which the plan is asked."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("steps", type=int)
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    options = parser.parse_args()
    torch.set_num_threads(1)
    json.dump(measure(options.recipe, options.overrides, options.steps), sys.stdout)
    print()


def measure(recipe: Path, overrides: list[str], steps: int) -> dict[str, float]:
    config = load_config(recipe, overrides)
    group = Group(0, 1, 0, torch.device("cpu"))
    prepared = PreparedData.open(config.prepared_folder)
    verify_s, _ = timed(prepared.verify)
    reset_memory_peak(group.device)
    before_bytes = psutil.Process().memory_info().rss
    plan_s, data = timed(lambda: open_training_data(prepared, config, group))
    first_s, _ = timed(lambda: data.plan.batch(1))
    steps_asked = range(1, min(BATCHES, data.plan.steps_per_epoch) + 1)
    batch_s = [timed(partial(data.plan.batch, step))[0] for step in steps_asked]
    epoch_s, _ = timed(lambda: data.plan.batch(data.plan.steps_per_epoch + 1))
    plan_bytes = memory_peak_bytes(group.device) - before_bytes
    with data.loader(group, 1, [group.rank]) as loader:
        # The first pass over the words fills the memory of subword dropout.
        for _ in range(steps):
            loader.next()
        cpu_s, tokens = time.process_time(), 0
        for _ in range(steps):
            tokens += loader.next().tokens
        cpu_s = time.process_time() - cpu_s
    return {
        "verify_s": verify_s,
        "plan_s": plan_s,
        "first_batch_s": first_s,
        "batch_s": statistics.median(batch_s),
        "next_epoch_s": epoch_s,
        "plan_bytes": plan_bytes,
        "load_cpu_s": cpu_s / steps,
        "load_cpu_s_per_token": cpu_s / tokens,
    }


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result


if __name__ == "__main__":
    main()
