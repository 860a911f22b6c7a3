"""Runs with a learning curve of one's choice, written as files and read back."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from unit.report.fake_run import CONFIG, WALL_AT, FakeRun, evaluated, started, step

from dragoman.checkpoints.names import CONTENTS
from dragoman.config import dump_config, parse_config
from dragoman.diagnosis.findings import Figure, Finding
from dragoman.diagnosis.learning.robust_fit import Floats
from dragoman.diagnosis.run.facts import RunFacts, read_facts
from dragoman.telemetry.events import AttemptEnded, EndCause, Event
from dragoman.training.schedule import learning_rate

STEP_S, EVALUATION_S = 2.0, 10.0
WHOLE = [name.replace(".", "__") for name in CONTENTS]


class Run(NamedTuple):
    facts: RunFacts

    def asked(self, answer: Callable[[RunFacts], Finding]) -> Finding:
        return answer(self.facts)


def learned(
    root: Path,
    validation: Sequence[float] | Floats,
    train_sample: Sequence[float] | Floats | None = None,
    bleu: Sequence[float] | Floats | None = None,
    every: int = 1000,
    settings: Sequence[str] | Mapping[str, Any] = (),
    ended: str = "training.steps = {} are done",
    cause: EndCause = "steps",
    steps: int | None = None,
    losses: Callable[[int], float] = lambda number: 3.0,
    bleu_error: float | None = None,
    skipped: Callable[[int], bool] = lambda number: False,
    checkpoints: Sequence[int] = (),
    best: int | None = None,
    epochs: float = 1.0,
) -> Run:
    """An evaluation each `every` steps; steps are recorded ten to an evaluation, to be quick.

    `ended`: why the run finished; empty: it has not. `checkpoints`: steps that are kept; `best`:
    the one that the link names. `epochs`: how many times the data was seen.
    """
    last = steps or every * len(validation)
    usual = {
        "training.steps": last,
        "schedule.warmup_steps": 0,
        "evaluation.every_steps": every,
    }
    if isinstance(settings, Mapping):
        config = parse_config(CONFIG, "x", {**usual, **settings})
    else:
        config = parse_config(
            CONFIG, "x", [*(f"{key}={value}" for key, value in usual.items()), *settings]
        )
    fake = FakeRun(root).with_manifest()
    fake.directory.config.write_text(dump_config(config))
    rate = learning_rate(config.schedule, config.model.width, config.training.steps)
    at, best_score = 0.0, -math.inf
    events: list[tuple[float, Event]] = [(at, started())]
    for number in range(every // 10, last + 1, every // 10):
        at += STEP_S
        done = step(
            number,
            STEP_S,
            loss=losses(number),
            learning_rate=rate(number),
            tokens=1000,
            updated=not skipped(number),
            epoch=epochs * number / last,
        )
        events.append((at, done))
        place = number // every - 1
        if number % every == 0 and place < len(validation):
            at += EVALUATION_S
            score = None if bleu is None else float(bleu[place])
            counted = -float(validation[place]) if score is None else score
            is_best, best_score = counted > best_score, max(counted, best_score)
            interval = {}
            if score is not None and bleu_error is not None:
                interval = {"bleu_low": score - 2 * bleu_error, "bleu_high": score + 2 * bleu_error}
            found = evaluated(
                number,
                bleu=score,
                **interval,
                validation_loss=float(validation[place]),
                train_sample_loss=None if train_sample is None else float(train_sample[place]),
                is_best=is_best,
                seconds=EVALUATION_S,
            )
            events.append((at, found))
    if ended:
        events.append((at, AttemptEnded(last, "finished", ended.format(f"{last:,}"), cause)))
    fake.with_events(events)
    for kept in checkpoints:
        fake.with_checkpoint(kept, **dict.fromkeys(WHOLE, 100))
    if best is not None:
        (fake.directory.checkpoints / "best").symlink_to(f"step-{best:08d}")
    facts = read_facts(fake.directory, read_at=WALL_AT + at + 1)
    return Run(facts)


def figure(finding: Finding, name: str) -> Figure:
    found = [each for each in finding.evidence if each.name == name]
    assert len(found) == 1, [each.name for each in finding.evidence]
    return found[0]


def noise(count: int, spread: float, seed: int) -> Floats:
    return np.random.default_rng(seed).normal(0.0, spread, count)
