"""Trains a variant for some windows on lab nodes, at a link rate of choice.

The model is that of bench-train, 7.6 million parameters. Each node has one worker with one thread.
"""

import shutil
import tomllib
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w
from scaling_bench.bench import steps_by_rank
from scaling_bench.figures import Figures
from scaling_bench.nodes import pinned_lab
from train_bench.candidates import own_source, threads_of, train_command
from train_bench.task import BATCH_TOKENS
from train_bench.text import recipe_of
from train_bench.watch import run_watched

from dragoman.batches.plan import BatchPlan, Lengths
from dragoman.config import SyncSettings, load_config
from dragoman.preparation import prepare
from dragoman.rundir import RunDir
from dragoman.telemetry.events import SyncChosen
from dragoman.telemetry.read.events import read_events
from sync_bench.figures import planned_span, steps_to_train, timed_figures, whole_windows
from sync_bench.variants import VARIANTS, Overrides, as_options, as_texts

LIMIT_S = 3 * 3600.0
MICRO_BATCHES = 4
"""Of an update, so that 2 and 4 nodes take the same ones."""
ACCUMULATED = sorted({int(str(keys.get("sync.accumulate", 1))) for keys in VARIANTS.values()})
UNKNOWN_WINDOW = max(int(str(keys.get("sync.local_steps", 1))) for keys in VARIANTS.values())
"""Steps of a window where the run chooses the mode itself, for as long as it has not."""


class Place(NamedTuple):
    ranks: int
    """Nodes, of one worker each."""
    link: str
    """As `dragoman lab` takes a rate."""


class Timed(NamedTuple):
    figures: Figures
    chosen: str
    """The mode, where the run has chosen it; empty where the variant says it."""


class Timing:
    def __init__(self, data: Path, folder: Path, steps: int) -> None:
        self._data, self._folder, self._steps = data, folder, steps

    @cached_property
    def recipe(self) -> Path:
        folder = self._folder / "timing"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "recipe.toml"
        content = recipe_of(self._data, folder)
        path.write_text(tomli_w.dumps(content), encoding="utf-8")
        lengths = prepare(load_config(path)).shards("train").lengths()
        size = BATCH_TOKENS // MICRO_BATCHES
        content["training"]["micro_batch_tokens"] = size
        content["training"]["tokens_per_update"] = update_tokens(lengths, size)
        path.write_text(tomli_w.dumps(content), encoding="utf-8")
        return path

    def settings(self, place: Place, variant: Overrides, number: int) -> dict[str, object]:
        """Returns everything that the result depends on, but the code and the machine."""
        recipe = tomllib.loads(self.recipe.read_text(encoding="utf-8"))
        return {
            **place._asdict(),
            "overrides": as_texts(variant),
            **{section: recipe[section] for section in ("tokenizer", "model", "training")},
            "steps": self._steps,
            "round": number,
        }

    def measure(self, place: Place, variant: Overrides) -> dict[str, Any]:
        """Returns the fields of Timed."""
        sync = load_config(self.recipe, as_texts(variant)).sync
        is_open = variant.get("sync.mode") == "auto"
        updates_per_step = sync.accumulate or 1
        planned = planned_span(
            UNKNOWN_WINDOW if is_open else sync.window_steps, -(-self._steps // updates_per_step)
        )
        run = RunDir(self._folder / "timing" / "run")
        shutil.rmtree(run.root, ignore_errors=True)
        # The recipe counts updates before they are accumulated.
        length = {"training.steps": updates_per_step * steps_to_train(planned)}
        with pinned_lab(place.link, place.ranks) as lab:
            options = [
                "--hosts",
                str(lab.hosts),
                "--skip-check",
                *as_options({**variant, **length}),
            ]
            command = train_command(self.recipe, run.root, *options)
            output = self._folder / "timing" / "train.log"
            run_watched(command, output, LIMIT_S, threads_of(1) | own_source())
        chosen = sync_settings_of(run)
        span = whole_windows(chosen.window_steps, planned)
        figures = timed_figures(steps_by_rank(run), span, chosen.accumulate or 1)
        return Timed(figures, chosen.mode if is_open else "")._asdict()


def sync_settings_of(run: RunDir) -> SyncSettings:
    """Returns how a run has synchronized: as its config says, or what auto has chosen last."""
    chosen = [
        stamped.event.settings
        for _, _, stamped in read_events(run, rank=0, kinds={SyncChosen})
        if isinstance(stamped.event, SyncChosen)
    ]
    return SyncSettings(**chosen[-1]) if chosen else load_config(run.config).sync


def update_tokens(lengths: Lengths, micro_batch_tokens: int) -> int:
    """Returns the tokens of the largest updates that are cut alike, accumulated or not.

    Larger ones would be cut into twice as many micro-batches of half the size, which take longer.
    """

    def is_cut_alike(tokens: int, times: int) -> bool:
        plan = BatchPlan(lengths, times * tokens, micro_batch_tokens, seed=1)
        return plan.micro_batches_per_step == times * MICRO_BATCHES

    candidates = range(MICRO_BATCHES * micro_batch_tokens, 0, -32)
    return next(
        tokens for tokens in candidates if all(is_cut_alike(tokens, times) for times in ACCUMULATED)
    )
