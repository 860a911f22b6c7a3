"""Which plots go with which question, and what its card is headed with."""

from collections.abc import Callable, Iterable

from dragoman.report.content import Answer, Report
from dragoman.report.document import Block, Question
from dragoman.report.sections import attempts, learning, learning_rate, machines, step_time

_SHORT = {
    "duration": "Duration",
    "trained": "Fully trained?",
    "overfitting": "Overfitting?",
    "devices": "Devices",
    "network": "Network",
    "learning-rate": "Learning rate",
    "training-set": "Training set",
    "checkpoint-files": "Checkpoint files",
    "checkpoint-size": "Checkpoint size",
    "step-time": "Average step",
    "traffic": "Steps and traffic",
    "stragglers": "Stragglers",
    "hangs": "Hangs",
    "faults": "Faults",
    "spikes": "Loss spikes",
    "padding": "Padding",
    "memory": "Memory",
    "quality": "Quality",
}
_PLOTS: dict[str, Callable[[Report], Iterable[Block]]] = {
    "duration": attempts.timeline,
    "trained": learning.progress,
    "overfitting": learning.gap,
    "devices": machines.devices,
    "network": machines.network,
    "learning-rate": learning_rate.plot,
    "step-time": step_time.plots,
    "traffic": step_time.traffic,
    "quality": learning.quality,
    "spikes": learning.spikes,
}


def asked(report: Report) -> list[Question]:
    return [_question(number, answer, report) for number, answer in enumerate(report.answers, 1)]


def also_found(report: Report) -> list[Question]:
    return [_question(None, answer, report) for answer in report.also]


def _question(number: int | None, answer: Answer, report: Report) -> Question:
    plots = _PLOTS.get(answer.key, _nothing)
    short = _SHORT.get(answer.key, answer.key.replace("-", " ").capitalize())
    return Question(number, short, answer, list(plots(report)))


def _nothing(report: Report) -> Iterable[Block]:
    return ()
