"""Trains a variant on workers of this machine, to the same tokens as all others, and translates.

Multi30k and recipes/multi30k.toml come in; a run's last validation loss and its translations of the
validation and the test set go out.
"""

import hashlib
import os
import sys
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from quality_bench.candidates import read_lines
from train_bench.candidates import own_source, threads_of, train_command
from train_bench.watch import CandidateError, run_watched

from dragoman.config import load_config
from dragoman.evaluation.metrics import Counts, bleu_for
from dragoman.preparation import prepare
from dragoman.recipes import shipped_recipe
from dragoman.rundir import RunDir, write_sentences
from dragoman.shards.passport import PreparedData
from dragoman.telemetry.events import Evaluated, StepDone
from dragoman.telemetry.read.events import read_events
from sync_bench.results import settings_hash
from sync_bench.variants import Overrides, as_options, as_texts

HELD_OUT = ("validation", "test")
LIMIT_S = 24 * 3600.0
FIXED: Overrides = {
    # Nobody has the weights of every step in common where workers take steps of their own.
    "optimizer.average_decay": 0.0,
    # Four micro-batches an update: 2 and 4 workers take the same ones.
    "training.micro_batch_tokens": 1024,
    # The run is evaluated once, by its loss; its translations are made afterwards.
    "evaluation.translate_sentences": 1,
    "evaluation.train_sample_pairs": 0,
    "evaluation.samples": 0,
    # A run that was interrupted goes on from here.
    "checkpoints.every_steps": 250,
    "checkpoints.keep_last": 1,
}


class Run(NamedTuple):
    variant: str
    ranks: int
    seed: int

    @property
    def title(self) -> str:
        return f"quality-{self.variant}-ranks-{self.ranks}-seed-{self.seed}"


class Scored(NamedTuple):
    """A finished run, as the tables need it."""

    validation_loss: float
    """At the end, per target token, unsmoothed."""
    tokens: int
    """Target tokens that it was trained with."""
    validation: Counts
    test: Counts


class Quality:
    def __init__(
        self, data: Path, folder: Path, steps: int, beam: int | None, changes: Overrides
    ) -> None:
        """`changes` are made to the recipe, the same for all variants."""
        self.recipe = shipped_recipe("multi30k").resolve()
        self.beam = beam or load_config(self.recipe).decoding.beam
        self.steps, self.changes = steps, changes
        self._folder = folder
        self._places = {"data.folder": data, "data.prepared": folder / "prepared"}

    @cached_property
    def _prepared(self) -> PreparedData:
        return prepare(load_config(self.recipe, as_texts({**self._places, **FIXED})))

    def overrides(self, variant: Overrides, seed: int) -> Overrides:
        """Returns all that is changed in the recipe, but for where files are."""
        length = {"training.steps": self.steps, "evaluation.every_steps": self.steps}
        return {**FIXED, **length, "training.seed": seed, **self.changes, **variant}

    def settings(self, run: Run, variant: Overrides) -> dict[str, object]:
        """Returns everything that the result depends on, but the code."""
        return {
            "ranks": run.ranks,
            "overrides": as_texts(self.overrides(variant, run.seed)),
            "recipe": hashlib.sha256(self.recipe.read_bytes()).hexdigest(),
            "data": self._prepared.passport.content_hash,
            "beam": self.beam,
        }

    def train(self, run: Run, variant: Overrides) -> dict[str, Any]:
        """Trains and translates, or goes on with a run that was interrupted."""
        name = f"{run.title}-{settings_hash(self.settings(run, variant))}"
        folder = RunDir(self._folder / "runs" / name)
        overrides = {**self._places, **self.overrides(variant, run.seed)}
        options = ["--workers", str(run.ranks), *as_options(overrides)]
        if run.ranks > (os.cpu_count() or 1):
            options.append("--oversubscribe")
        command = train_command(self.recipe, folder.root, *options)
        self._run(command, self._beside(folder, ".log"), 1)
        return {**ending_of(folder), "translations": self._translate(folder)}

    def scored(self, measured: Mapping[str, Any]) -> Scored:
        bleu = bleu_for(self._prepared.passport.target_language)
        counts, begin = [], 0
        for split in HELD_OUT:
            references = self._prepared.text(split)[1]
            translations = measured["translations"][begin : begin + len(references)]
            counts.append(bleu.counts(translations, references))
            begin += len(references)
        return Scored(measured["validation_loss"], measured["tokens"], *counts)

    def _translate(self, folder: RunDir) -> list[str]:
        """Translates both held-out sets at once, validation first, with the last weights."""
        source, output = self._folder / "held-out.txt", self._beside(folder, ".txt")
        sentences = [line for split in HELD_OUT for line in self._prepared.text(split)[0]]
        write_sentences(source, sentences)
        command = [sys.executable, "-m", "dragoman", "translate", str(folder.root)]
        command += ["--checkpoint", "latest", "--beam", str(self.beam), "--lines", "whole"]
        command += ["--input", str(source), "--output", str(output)]
        self._run(command, self._beside(folder, ".translate.log"), os.cpu_count() or 1)
        translations = read_lines(output)
        if len(translations) != len(sentences):
            raise CandidateError(f"{len(translations)} translations of {len(sentences)} sentences")
        return translations

    def _beside(self, folder: RunDir, ending: str) -> Path:
        return folder.root.with_name(f"{folder.root.name}{ending}")

    def _run(self, command: list[str], output: Path, threads: int) -> None:
        output.parent.mkdir(parents=True, exist_ok=True)
        run_watched(command, output, LIMIT_S, threads_of(threads) | own_source())


def ending_of(folder: RunDir) -> dict[str, float]:
    """Reads the last validation loss of a run, and the target tokens that it was trained with."""
    tokens: dict[int, int] = {}  # by step: an interrupted run takes some of them again
    loss = None
    for _, _, stamped in read_events(folder, rank=0, kinds={StepDone, Evaluated}):
        if isinstance(stamped.event, StepDone):
            tokens[stamped.event.step] = stamped.event.tokens
        elif isinstance(stamped.event, Evaluated):
            loss = stamped.event.validation_loss
    if loss is None:
        raise CandidateError(f"{folder.root}: the run was never evaluated")
    return {"validation_loss": loss, "tokens": sum(tokens.values())}
