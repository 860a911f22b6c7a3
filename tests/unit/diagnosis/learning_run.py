"""Runs with a learning curve of one's choice, written as files and read back."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from unit.report.fake_run import CONFIG, WALL_AT, FakeRun, evaluated, started, step

from dragoman.config import dump_config, parse_config
from dragoman.diagnosis.findings import Figure, Finding
from dragoman.diagnosis.learning.robust_fit import Floats
from dragoman.diagnosis.run.facts import RunFacts, read_facts
from dragoman.telemetry.events import AttemptEnded, EndCause, Event
from dragoman.training.schedule import learning_rate

STEP_S, EVALUATION_S = 2.0, 10.0


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
    settings: Sequence[str] = (),
    ended: str = "training.steps = {} are done",
    cause: EndCause = "steps",
    steps: int | None = None,
    losses: Callable[[int], float] = lambda number: 3.0,
) -> Run:
    """An evaluation each `every` steps; steps are recorded ten to an evaluation, to be quick.

    `ended`: why the run finished; empty: it has not.
    """
    last = steps or every * len(validation)
    config = parse_config(
        CONFIG, "x", [f"training.steps={last}", "schedule.warmup_steps=0", *settings]
    )
    fake = FakeRun(root).with_manifest()
    fake.directory.config.write_text(dump_config(config))
    rate = learning_rate(config.schedule, config.model.width, config.training.steps)
    at = 0.0
    events: list[tuple[float, Event]] = [(at, started())]
    for number in range(every // 10, last + 1, every // 10):
        at += STEP_S
        events.append(
            (at, step(number, STEP_S, loss=losses(number), learning_rate=rate(number), tokens=1000))
        )
        place = number // every - 1
        if number % every == 0 and place < len(validation):
            at += EVALUATION_S
            found = evaluated(
                number,
                bleu=None if bleu is None else float(bleu[place]),
                validation_loss=float(validation[place]),
                train_sample_loss=None if train_sample is None else float(train_sample[place]),
                seconds=EVALUATION_S,
            )
            events.append((at, found))
    if ended:
        events.append((at, AttemptEnded(last, "finished", ended.format(f"{last:,}"), cause)))
    fake.with_events(events)
    facts = read_facts(fake.directory, read_at=WALL_AT + at + 1)
    return Run(facts)


def figure(finding: Finding, name: str) -> Figure:
    found = [each for each in finding.evidence if each.name == name]
    assert len(found) == 1, [each.name for each in finding.evidence]
    return found[0]


def noise(count: int, spread: float, seed: int) -> Floats:
    return np.random.default_rng(seed).normal(0.0, spread, count)
