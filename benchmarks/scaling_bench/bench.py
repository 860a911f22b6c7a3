"""What all sections share: recipes, prepared data, and how a run is started and read."""

import json
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import tomli_w
from train_bench.candidates import own_source, threads_of, train_command
from train_bench.task import BATCH_TOKENS
from train_bench.text import LITTLE_EVALUATION, largest_update, recipe_of, write_held_out
from train_bench.watch import Watched, run_watched

from dragoman.config import load_config
from dragoman.preparation import prepare
from dragoman.recipes import shipped_recipe
from dragoman.rundir import RunDir
from dragoman.shards.files import PairIds
from dragoman.shards.passport import PASSPORT_NAME, PreparedData
from dragoman.telemetry.events import StepDone
from dragoman.telemetry.read.events import read_events
from scaling_bench.corpora import write_corpus
from scaling_bench.figures import TimedStep

WARM_UP_STEPS = 3
"""At the start of each measurement, not counted: allocators and connections warm up."""
LIMIT_S = 1800.0
MICRO_BATCHES = 2
"""Of an update, so that one worker and two take the same."""
SMALL_STEPS = 4
"""A step of the shipped recipe takes a fraction of one of the larger model."""

LOADING = Path(__file__).parent / "loading.py"

Overrides = Mapping[str, object]
PairLists = Iterable[list[PairIds]]

TINY_MODEL = {
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "model.width": 32,
    "model.heads": 2,
    "model.filter": 64,
}
"""So small that what is not computing shows. It runs with one thread, beside which the loader and
telemetry have a core."""


class Bench:
    def __init__(self, data: Path, folder: Path, steps: int, long_steps: int) -> None:
        self._data = data
        self.folder = folder
        """Holds recipes, prepared data, and the runs that are being measured."""
        self.steps = steps
        """Counted ones of a measurement of the larger model; small ones take more."""
        self.long_steps = long_steps

    @cached_property
    def larger_recipe(self) -> Path:
        """The model of bench-train, whose update is cut into two micro-batches."""
        recipe = recipe_of(self._data, self._made("larger"))
        path = self._write("larger", recipe)
        lengths = prepare(load_config(path)).shards("train").lengths()
        size = BATCH_TOKENS // MICRO_BATCHES
        recipe["training"]["micro_batch_tokens"] = size
        recipe["training"]["tokens_per_update"] = largest_update(lengths, size, MICRO_BATCHES)[0]
        return self._write("larger", recipe)

    @cached_property
    def shipped_recipe(self) -> Path:
        """recipes/multi30k.toml, but for the held-out pairs, which should take no time."""
        folder = self._made("multi30k")
        recipe = tomllib.loads(shipped_recipe("multi30k").read_text(encoding="utf-8"))
        recipe["data"] |= {"folder": str(self._data), "prepared": str(folder / "prepared")}
        recipe["data"]["validation"] = [write_held_out(folder)]
        recipe["data"].pop("test")
        recipe["evaluation"] = LITTLE_EVALUATION
        path = self._write("multi30k", recipe)
        prepare(load_config(path))
        return path

    def prepared(self, recipe: Path) -> PreparedData:
        return prepare(load_config(recipe))

    def train(
        self, recipe: Path, overrides: Overrides, workers: int, threads: int
    ) -> tuple[Watched, RunDir]:
        """Trains once, in a folder of its own that replaces the one before."""
        run = self.new_run("run")
        options = ["--workers", str(workers), *set_options(overrides)]
        command = train_command(recipe, run.root, *options)
        output = self.folder / "train.log"
        watched = run_watched(command, output, LIMIT_S, threads_of(threads) | own_source())
        return watched, run

    def load(self, recipe: Path, overrides: Overrides, steps: int) -> dict[str, float]:
        """Measures opening, planning and loading of the data that a run would read."""
        command = [sys.executable, str(LOADING), str(steps), str(recipe), *set_options(overrides)]
        output = self.folder / "loading.log"
        run_watched(command, output, LIMIT_S, threads_of(1) | own_source())
        measured: dict[str, float] = json.loads(output.read_text().splitlines()[-1])
        return measured

    def corpus(self, recipe: Path, name: str, pairs: Callable[[], PairLists]) -> Overrides:
        """Returns the override for prepared data with these pairs, written at the first call."""
        folder = self.folder / "corpora" / name
        if not (folder / PASSPORT_NAME).exists():
            print(f"  writing {folder}", flush=True)
            shutil.rmtree(folder, ignore_errors=True)
            write_corpus(self.prepared(recipe), folder, pairs())
        return {"data.prepared": folder}

    def new_run(self, name: str) -> RunDir:
        run = RunDir(self.folder / name)
        shutil.rmtree(run.root, ignore_errors=True)
        return run

    def _made(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _write(self, name: str, recipe: Mapping[str, Any]) -> Path:
        path = self.folder / name / "recipe.toml"
        path.write_text(tomli_w.dumps(recipe), encoding="utf-8")
        return path


def set_options(overrides: Overrides) -> list[str]:
    return [word for key, value in overrides.items() for word in ("--set", f"{key}={value}")]


def steps_by_rank(run: RunDir) -> dict[int, list[TimedStep]]:
    ranks: dict[int, list[TimedStep]] = {}
    for _, rank, stamped in read_events(run, kinds={StepDone}):
        if isinstance(stamped.event, StepDone):
            ranks.setdefault(rank, []).append(TimedStep(stamped.monotonic_at, stamped.event))
    return ranks
