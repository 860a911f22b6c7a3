"""Writes the run directory of a world, and tells what the truth in it came to."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.config import Config
from dragoman.rundir import RunDir, write_json
from dragoman.telemetry.events import Evaluated
from scenarios import recipe
from scenarios.attempt_events import Attempt, clocks_of, lines_of_rank, shared_columns
from scenarios.learning import Evaluator
from scenarios.pace import pace_of
from scenarios.readings import reading_times
from scenarios.truth import Truth, truth_of
from scenarios.world import Life, World


def write_run(world: World, root: Path) -> Truth:
    config = recipe.config_of(world)
    run = RunDir(root)
    recipe.write_config(run, config)
    if world.recorded.manifest:
        recipe.write_manifest(run, world, config)
    if not world.lives:
        return truth_of(world, config, [])
    attempts = list(_attempts(world, config))
    run.events.mkdir()
    for attempt in attempts:
        chance = np.random.default_rng([world.seed, attempt.number, 7])
        shared = shared_columns(config, attempt, chance)
        times = reading_times(world, config, attempt.pace, chance)
        for rank in range(attempt.world.machines.ranks):
            lines = lines_of_rank(config, attempt, rank, shared, times, chance)
            run.events_of(attempt.number, rank).write_text(
                "".join(text for _, text in sorted(lines, key=lambda line: line[0])),
                encoding="utf-8",
            )
    if world.recorded.checkpoints:
        saved = sorted({int(a.pace.steps[place]) for a in attempts for place in a.pace.saved})
        recipe.write_checkpoints(run, config, saved, _best_step(attempts))
    _write_status(run, world, attempts)
    if world.recorded.test_score is not None:
        recipe.write_test_score(run, attempts[-1].life.last_step, world.recorded.test_score)
    return truth_of(world, config, attempts)


def _attempts(world: World, config: Config) -> Iterator[Attempt]:
    begun_s = 0.0
    best: Evaluated | None = None
    evaluator = Evaluator.of(world, np.random.default_rng([world.seed, 3]))
    for number, life in enumerate(world.lives, start=1):
        chance = np.random.default_rng([world.seed, number])
        own = _in(world, life)
        pace = pace_of(own, config, life, chance)
        evaluations = []
        for place in pace.evaluated:
            evaluated = evaluator.evaluate(int(pace.steps[place]), best, chance)
            best = evaluated if evaluated.is_best else best
            evaluations.append(evaluated)
        yield Attempt(number, life, own, pace, begun_s, evaluations)
        begun_s += pace.ends_s + life.down_s


def _in(world: World, life: Life) -> World:
    """With the machines and the link of that attempt: fewer ranks have more to compute each."""
    machines = life.machines or world.machines
    factor = world.machines.ranks / machines.ranks
    work = world.work
    return replace(
        world,
        machines=machines,
        link=life.link or world.link,
        work=replace(work, forward_s=factor * work.forward_s, backward_s=factor * work.backward_s),
    )


def _best_step(attempts: list[Attempt]) -> int | None:
    best = [e for a in attempts for e in a.evaluations if e.is_best]
    return best[-1].step if best else None


def _write_status(run: RunDir, world: World, attempts: list[Attempt]) -> None:
    last = attempts[-1]
    evaluations = [e for a in attempts for e in a.evaluations]
    content: dict[str, Any] = {
        "state": last.life.state or "training",
        "attempt": last.number,
        "ranks": last.world.machines.ranks,
        "step": int(last.pace.steps[-1]) if len(last.pace.steps) else last.life.first_step - 1,
        "reason": last.life.reason,
    }
    if evaluations:
        content |= {"validation_loss": evaluations[-1].validation_loss}
        content |= {"bleu": evaluations[-1].bleu}
    heartbeat, _ = clocks_of(world, 0, np.array([last.begun_s + last.pace.ends_s]))
    write_json(run.status, content | {"heartbeat_at": float(heartbeat[0])})
