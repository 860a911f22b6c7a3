"""The text that pieces are learned from: every n-th pair that stays, of all slices in order."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dragoman.preparation.plan import Plan
from dragoman.preparation.stage import from_text
from dragoman.preparation.task import Inputs, Result, StageFile, Task
from dragoman.preparation.workers import Workers, run_tasks


class SampleSettings(NamedTuple):
    first: int
    """Place of the first pair that is in the sample, among those of the slice that stay."""
    every: int


def sampled_texts(plan: Plan, every: int, total: int, workers: Workers) -> Iterator[str]:
    """Yields both sides of every n-th kept pair; `total` is the number of clean pairs."""
    tasks = list(_tasks(plan, every))
    if every == 1:  # all of it is needed here
        for task in tasks:
            yield from _lines(task.do().contents["text"])
        return
    stage = plan.sample(every)
    missing = [task for task in tasks if not stage.is_done(task.number)]
    run_tasks(workers, missing, "sampling text", total)
    for task in tasks:
        yield from _lines(stage.content(task.number, "text"))


def _tasks(plan: Plan, every: int) -> Iterator[Task]:
    seen = 0
    for number in plan.clean.numbers():
        inputs = {
            "flags": StageFile(plan.kept, number, "flags"),
            **{side: StageFile(plan.clean, number, side) for side in ("source", "target")},
        }
        settings = SampleSettings(-seen % every, every)
        yield Task(sample_slice, settings, inputs, plan.sample(every), number)
        dropped = plan.kept.record(number)["dropped"].values()
        seen += plan.clean.record(number)["pairs"] - sum(dropped)


def sample_slice(settings: SampleSettings, inputs: Inputs) -> Result:
    kept = np.frombuffer(inputs["flags"].read(), dtype=np.bool_)
    pairs = from_text(inputs["source"].read(), inputs["target"].read())
    places = np.flatnonzero(kept)[settings.first :: settings.every]
    text = "".join(f"{pairs[place].source}\n{pairs[place].target}\n" for place in places)
    return Result({}, {"text": text.encode()}, pairs=len(pairs))


def _lines(text: str | bytes) -> list[str]:
    assert isinstance(text, bytes)
    return text.decode().split("\n")[:-1]
