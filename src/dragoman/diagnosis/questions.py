"""The questions about a run, one row each: facts of a run come in, a diagnosis goes out.

A new question is a module in `answers`, a row here and a test: reports, their schema and their
order follow from the table.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from dragoman.diagnosis.answers import (
    checkpoint_files,
    checkpoint_size,
    devices,
    duration,
    faults,
    hangs,
    learning_rate,
    loss_spikes,
    memory,
    network,
    overfitting,
    padding,
    quality,
    step_time,
    stragglers,
    traffic,
    trained,
    training_set,
)
from dragoman.diagnosis.findings import UNKNOWN, Finding, Health, unknown
from dragoman.diagnosis.run.facts import RunFacts

PlotName = Literal[
    "attempts",
    "BLEU",
    "CPU utilization",
    "GPU utilization",
    "learning rate",
    "network throughput",
    "step parts",
    "step time",
    "step time histogram",
    "traffic per step",
    "training loss",
    "validation and training sample loss",
    "validation loss",
]
"""`report.sections` draws them."""


@dataclass(frozen=True)
class Question:
    key: str
    """Names the question for programs."""
    text: str
    title: str
    """A heading of one to three words."""
    answer: Callable[[RunFacts], Finding | None]
    """Returns None only where `is_always_answered` is false: there is nothing to report."""
    plots: Sequence[PlotName] = ()
    health: Mapping[str, Health] = field(default_factory=dict)
    """Verdict -> its health; a verdict that is not listed is worth a look if it has advice."""
    is_always_answered: bool = True


QUESTIONS: Sequence[Question] = (
    Question(duration.KEY, duration.QUESTION, "Duration", duration.answer, plots=["attempts"]),
    Question(
        trained.KEY,
        trained.QUESTION,
        "Fully trained?",
        trained.answer,
        plots=["validation loss", "BLEU"],
        health={"yes": "good", "not yet": "watch", "too early to say": "open"},
    ),
    Question(
        overfitting.KEY,
        overfitting.QUESTION,
        "Overfitting?",
        overfitting.answer,
        plots=["validation and training sample loss"],
        health={"no": "good", "yes": "poor", "too early to say": "open"},
    ),
    Question(
        devices.KEY,
        devices.QUESTION,
        "Devices",
        devices.answer,
        plots=["GPU utilization", "CPU utilization"],
        health={"fully used": "good", "partly used": "watch", "mostly waiting": "poor"},
    ),
    Question(
        network.KEY,
        network.QUESTION,
        "Network",
        network.answer,
        plots=["network throughput"],
        health={
            "compute-bound": "good",
            "network-bound": "poor",
            "latency-bound": "poor",
            "straggler": "poor",
            "input-bound": "poor",
        },
    ),
    Question(
        learning_rate.KEY,
        learning_rate.QUESTION,
        "Learning rate",
        learning_rate.answer,
        plots=["learning rate"],
        health={"as set": "good", "not as set": "watch"},
    ),
    Question(training_set.KEY, training_set.QUESTION, "Training set", training_set.answer),
    Question(
        checkpoint_files.KEY,
        checkpoint_files.QUESTION,
        "Checkpoint files",
        checkpoint_files.answer,
    ),
    Question(
        checkpoint_size.KEY, checkpoint_size.QUESTION, "Checkpoint size", checkpoint_size.answer
    ),
    Question(
        step_time.KEY,
        step_time.QUESTION,
        "Average step",
        step_time.answer,
        plots=["step parts", "step time histogram"],
    ),
    Question(
        traffic.KEY,
        traffic.QUESTION,
        "Steps and traffic",
        traffic.answer,
        plots=["traffic per step", "step time"],
        health={
            "as predicted": "good",
            "more than predicted": "watch",
            "less than predicted": "watch",
        },
    ),
    # Reported only where there is something to report, the most expensive kinds of trouble first.
    Question(faults.KEY, faults.QUESTION, "Faults", faults.finding, is_always_answered=False),
    Question(hangs.KEY, hangs.QUESTION, "Hangs", hangs.finding, is_always_answered=False),
    Question(
        stragglers.KEY,
        stragglers.QUESTION,
        "Stragglers",
        stragglers.finding,
        is_always_answered=False,
    ),
    Question(
        "spikes",
        loss_spikes.QUESTION,
        "Loss spikes",
        loss_spikes.finding,
        plots=["training loss"],
        is_always_answered=False,
    ),
    Question(memory.KEY, memory.QUESTION, "Memory", memory.finding, is_always_answered=False),
    Question(padding.KEY, padding.QUESTION, "Padding", padding.finding, is_always_answered=False),
    Question(
        quality.KEY,
        quality.QUESTION,
        "Quality",
        quality.finding,
        plots=["BLEU"],
        is_always_answered=False,
    ),
)


@dataclass(frozen=True)
class Diagnosis:
    answers: Sequence[Finding]
    """To the questions that are always answered, in the order of the table."""
    also: Sequence[Finding]
    """To the others, as far as there is something to report."""


def diagnose(run: RunFacts) -> Diagnosis:
    """Answers all questions; one that fails on a damaged record costs no other."""
    asked = [question for question in QUESTIONS if question.is_always_answered]
    others = [question for question in QUESTIONS if not question.is_always_answered]
    also = (_answer(question, run) for question in others)
    return Diagnosis(
        answers=[
            _answer(question, run) or unknown(question.key, question.text, "there is no answer")
            for question in asked
        ],
        also=[finding for finding in also if finding],
    )


def question_of(key: str) -> Question:
    return next(question for question in QUESTIONS if question.key == key)


def health_of(finding: Finding) -> Health:
    if finding.confidence == "none" or finding.verdict == UNKNOWN:
        return "open"
    otherwise: Health = "watch" if finding.advice else "fact"
    return question_of(finding.key).health.get(finding.verdict, otherwise)


def _answer(question: Question, run: RunFacts) -> Finding | None:
    try:
        found = question.answer(run)
        return found and replace(found, key=question.key, question=question.text)
    except Exception as error:  # whatever a damaged record leads to
        message = " ".join(str(error).split()).rstrip(".")
        because = (
            "this part of the diagnosis failed on this record, which is a fault of ours "
            f"({type(error).__name__}{': ' + message if message else ''})"
        )
        return unknown(question.key, question.text, because)
