"""The first thousand steps of a long run against its last thousand: does anything grow?"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dragoman.rundir import RunDir
from dragoman.telemetry.read.events import event_files
from scaling_bench.bench import TINY_MODEL, WARM_UP_STEPS, Bench, steps_by_rank
from scaling_bench.figures import FolderSizes, bytes_of_lines, sizes_at, window_figures
from scaling_bench.tables import Column, Round, Section

WINDOW = 1000
SAVES_PER_WINDOW = 5
"""More than are kept, so that the folder is full at the end of the first window."""
SIZES_EVERY_S = 0.5
UPDATE = {"training.tokens_per_update": 200, "training.micro_batch_tokens": 512}


def window_of(steps: int) -> int:
    """Returns the size of a window: a thousand steps, or a third of a shorter run."""
    return min(WINDOW, (steps - WARM_UP_STEPS) // 3)


def measure(bench: Bench) -> Round:
    window = window_of(bench.long_steps)
    overrides = {
        **TINY_MODEL,
        **UPDATE,
        "training.steps": bench.long_steps,
        "checkpoints.every_steps": max(1, window // SAVES_PER_WINDOW),
    }
    recipe = bench.larger_recipe
    with folder_sizes(bench.folder / "run") as sizes:
        watched, run = bench.train(recipe, overrides, workers=1, threads=1)
    steps = steps_by_rank(run)[0]
    [(_, _, events)] = event_files(run)
    lines = events.read_bytes().splitlines(keepends=True)
    windows = {
        "first": steps[WARM_UP_STEPS - 1 : WARM_UP_STEPS + window],
        "last": steps[-window - 1 :],
    }
    measured = {}
    for name, inside in windows.items():
        begin, end = inside[0].at, inside[-1].at
        at_end = sizes_at(sizes, end)
        measured[f"{name} {window:,} steps"] = window_figures(inside, watched.usage) | {
            "event_bytes": bytes_of_lines(lines, begin, end) / window,
            "checkpoint_bytes": at_end.checkpoint_bytes,
            "run_bytes": at_end.run_bytes,
        }
    return measured


@contextmanager
def folder_sizes(run: Path) -> Iterator[list[FolderSizes]]:
    """Samples the size of a run's folders in a thread for as long as the block takes."""
    sizes = [FolderSizes(time.monotonic(), 0, 0)]
    is_over = threading.Event()

    def sample() -> None:
        while not is_over.wait(SIZES_EVERY_S):
            at = time.monotonic()
            sizes.append(FolderSizes(at, bytes_below(run), bytes_below(RunDir(run).checkpoints)))

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield sizes
    finally:
        is_over.set()
        thread.join()


def bytes_below(folder: Path) -> int:
    total = 0
    with suppress(OSError):  # a checkpoint is being removed
        for path in folder.rglob("*"):
            with suppress(OSError):
                total += path.lstat().st_size
    return total


def section(long_steps: int) -> Section:
    window = f"{window_of(long_steps):,} steps"
    return Section(
        f"A run of {long_steps:,} steps",
        (
            Column("step_median_s", "median step, ms", ".2f", 1e3),
            Column("step_mean_s", "mean step, ms", ".2f", 1e3),
            Column("resident_bytes", "resident memory, MiB", ",.0f", 2**-20),
            Column("own_bytes", "of it not backed by files, MiB", ",.0f", 2**-20),
            Column("event_bytes", "events, bytes a step", ",.0f"),
            Column("checkpoint_bytes", "checkpoints at its end, MiB", ",.1f", 2**-20),
            Column("run_bytes", "folder of the run at its end, MiB", ",.1f", 2**-20),
        ),
        [(f"last {window}", f"first {window}")],
        [measure],
    )
