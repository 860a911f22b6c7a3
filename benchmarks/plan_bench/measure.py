"""Measures a combination: what is known before its run, and then the run, in the same lab.

Kept is what was measured and no forecast, so that a changed model of forecasts can be held against
runs that were made before it.
"""

import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w
from scaling_bench.bench import set_options, steps_by_rank
from scaling_bench.nodes import pinned_lab
from sync_bench.figures import Span, planned_span
from train_bench.candidates import own_source, threads_of, train_command
from train_bench.watch import run_watched

from dragoman.check.result import CheckResult
from dragoman.config import Config, load_config
from dragoman.plan.checking import check_hosts
from dragoman.plan.plan import plan_from_assumption, plan_from_check
from dragoman.preparation import prepare
from dragoman.rundir import RunDir
from plan_bench.combinations import SYNC, Combination, Overrides, recipe_of

LIMIT_S = 3 * 3600.0
SPEED_STEPS = 12


class Measurement(NamedTuple):
    """Of one combination, as it is kept; the fields but the first are those of Outcome."""

    check: dict[str, Any]
    """CheckResult, made before the run."""
    flops_per_s: float
    """That a worker of this machine reaches, for a cluster in words."""
    measured_s: float
    exposed_s: float
    compute_s: float


class Outcome(NamedTuple):
    forecast_s: float
    low_s: float
    high_s: float
    measured_s: float
    """Of a step: from the end of the warm-up to the end of the last one, by their number."""
    exposed_forecast_s: float
    exposed_s: float
    """What the rank that waits the least waits for others' gradients or weights."""
    compute_forecast_s: float
    compute_s: float
    """Forward, backward and update of the slowest rank."""

    @property
    def error(self) -> float:
        return self.forecast_s / self.measured_s - 1

    @property
    def contains_truth(self) -> bool:
        return self.low_s <= self.measured_s <= self.high_s


class Measuring:
    def __init__(self, folder: Path, steps: int) -> None:
        self._folder, self._steps = folder, steps
        self._speeds: dict[str, float] = {}

    def recipe(self, model: str) -> Path:
        folder = self._folder / model
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "recipe.toml"
        path.write_text(tomli_w.dumps(recipe_of(model, str(self._folder))), encoding="utf-8")
        prepare(load_config(path))
        return path

    def settings(self, combination: Combination, number: int) -> dict[str, Any]:
        """Returns everything that the result depends on, but the code and the machine."""
        return {
            **combination._asdict(),
            "recipe": recipe_of(combination.model, ""),
            "overrides": SYNC[combination.sync],
            "steps": self._steps,
            "round": number,
        }

    def measure(self, combination: Combination) -> dict[str, Any]:
        """Returns the fields of Measurement."""
        recipe, config = self._config(combination)
        speed = self.reached_flops_per_s(combination.model)
        with pinned_lab(combination.link, combination.nodes) as lab:
            checked = check_hosts(str(lab.hosts), config)
            measured = self._run(recipe, config, SYNC[combination.sync], str(lab.hosts))
        return Measurement(checked.model_dump(mode="json"), speed, **measured)._asdict()

    def outcome(self, combination: Combination, found: Measurement, calibration: str) -> Outcome:
        """Forecasts the combination, and sets what was measured beside it."""
        _, config = self._config(combination)
        if calibration == "check":
            plan = plan_from_check(config, CheckResult.model_validate(found.check))
        else:
            plan = plan_from_assumption(config, words(combination, found.flops_per_s))
        own = plan.own
        return Outcome(
            forecast_s=own.step_s.value,
            low_s=own.step_s.low,
            high_s=own.step_s.high,
            measured_s=found.measured_s,
            exposed_forecast_s=own.exposed_s.value,
            exposed_s=found.exposed_s,
            compute_forecast_s=own.compute_s.value,
            compute_s=found.compute_s,
        )

    def _config(self, combination: Combination) -> tuple[Path, Config]:
        recipe = self.recipe(combination.model)
        texts = [f"{key}={value}" for key, value in SYNC[combination.sync].items()]
        return recipe, load_config(recipe, texts)

    def reached_flops_per_s(self, model: str) -> float:
        """Returns what a worker reaches with a core of its own while another computes beside it.

        Workers that take steps of their own have no gradients to send beside backward.
        """
        if model not in self._speeds:
            recipe = self.recipe(model)
            alone = {"sync.mode": "diloco", "sync.local_steps": 500, "sync.fragments": 1}
            with pinned_lab("none", 2) as lab:
                run = self._train(recipe, alone, str(lab.hosts), SPEED_STEPS)
            counted = [step.done for steps in steps_by_rank(run).values() for step in steps[3:-1]]
            seconds = sum(done.parts_s["forward"] + done.parts_s["backward"] for done in counted)
            self._speeds[model] = sum(done.counts["flops"] for done in counted) / seconds
        return self._speeds[model]

    def _run(
        self, recipe: Path, config: Config, overrides: Overrides, hosts: str
    ) -> dict[str, float]:
        updates = config.sync.accumulate or 1
        span = planned_span(config.sync.window_steps, -(-self._steps // updates))
        # The recipe counts updates before they are accumulated. The last step of a run sends all
        # that is left, so it is not among the counted ones.
        run = self._train(recipe, overrides, hosts, updates * (span.end + 1))
        return figures_of(run, span)

    def _train(self, recipe: Path, overrides: Overrides, hosts: str, steps: int) -> RunDir:
        run = RunDir(self._folder / "run")
        shutil.rmtree(run.root, ignore_errors=True)
        values = {**overrides, "training.steps": steps}
        options = ["--hosts", hosts, "--skip-check", *set_options(values)]
        command = train_command(recipe, run.root, *options)
        run_watched(command, self._folder / "train.log", LIMIT_S, threads_of(1) | own_source())
        return run


def words(combination: Combination, flops_per_s: float) -> str:
    """Returns the cluster in words; nodes beyond the machine's cores share them."""
    share = min(1.0, len(os.sched_getaffinity(0)) / combination.nodes)
    speed = f"{share * flops_per_s / 1e9:.3f} GFLOP/s"
    link = "unlimited" if combination.link == "none" else combination.link
    return f"{combination.nodes} nodes, {link}, {speed}, 100 %, cpu"


def figures_of(run: RunDir, span: Span) -> dict[str, float]:
    ranks = steps_by_rank(run)
    lead = ranks[0]
    steps = span.end - span.begin
    counted = [[step.done for step in each[span.begin : span.end]] for each in ranks.values()]
    parts = [
        sum(done.parts_s[part] for done in each for part in ("forward", "backward", "optimizer"))
        for each in counted
    ]
    waits = [sum(done.parts_s.get("communication", 0.0) for done in each) for each in counted]
    return {
        "measured_s": (lead[span.end - 1].at - lead[span.begin - 1].at) / steps,
        "exposed_s": min(waits) / steps,
        "compute_s": max(parts) / steps,
    }
