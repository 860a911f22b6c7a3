"""The questions about a run, one row each: facts of a run come in, a diagnosis goes out.

A new question is a module in `answers`, a row here and a test: reports, their schema and their
order follow from the tables.
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
    more_machines,
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
from dragoman.diagnosis.starting import with_start

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
    """Returns None where there is nothing to report, which only those of `ALSO` may."""
    plots: Sequence[PlotName] = ()
    health: Mapping[str, Health] = field(default_factory=dict)
    """Verdict -> its health; a verdict that is not listed is worth a look if it has advice."""


QUESTIONS: Sequence[Question] = (
    Question(
        "duration",
        "How long did the training run take?",
        "Duration",
        duration.answer,
        plots=["attempts"],
    ),
    Question(
        "trained",
        "Is the model fully trained? How can you tell?",
        "Fully trained?",
        trained.answer,
        plots=["validation loss", "BLEU"],
        health={"yes": "good", "not yet": "watch", "too early to say": "open"},
    ),
    Question(
        "overfitting",
        "Is it overfitting?",
        "Overfitting?",
        overfitting.answer,
        plots=["validation and training sample loss"],
        health={"no": "good", "yes": "poor", "too early to say": "open"},
    ),
    Question(
        "devices",
        "Were the GPUs (or CPUs) fully used?",
        "Devices",
        devices.answer,
        plots=["GPU utilization", "CPU utilization"],
        health={"fully used": "good", "partly used": "watch", "mostly waiting": "poor"},
    ),
    Question(
        "network",
        "What was the network traffic? Was the network the bottleneck?",
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
        "learning-rate",
        "What does the learning-rate plot show, and which setting makes it so?",
        "Learning rate",
        learning_rate.answer,
        plots=["learning rate"],
        health={"as set": "good", "not as set": "watch"},
    ),
    Question(
        "training-set",
        "How big is the training set, in megabytes and in lines?",
        "Training set",
        training_set.answer,
    ),
    Question(
        "checkpoint-files",
        "Which files is a checkpoint made of?",
        "Checkpoint files",
        checkpoint_files.answer,
    ),
    Question(
        "checkpoint-size",
        "How big is a checkpoint, in megabytes?",
        "Checkpoint size",
        checkpoint_size.answer,
    ),
    Question(
        "step-time",
        "How long did an average step take?",
        "Average step",
        step_time.answer,
        plots=["step parts", "step time histogram"],
    ),
    Question(
        "traffic",
        "How does that go together with the network traffic between the nodes?",
        "Steps and traffic",
        traffic.answer,
        plots=["traffic per step", "step time"],
        health={
            "as predicted": "good",
            "more than predicted": "watch",
            "less than predicted": "watch",
        },
    ),
)
"""Of every run, in the order of the reports."""

ALSO: Sequence[Question] = (
    Question("faults", "What went wrong, and what did it cost?", "Faults", faults.answer),
    Question("hangs", "Did the run hang?", "Hangs", hangs.answer),
    Question("stragglers", "Do ranks wait for a slow one?", "Stragglers", stragglers.answer),
    Question(
        "more-machines",
        "Would one more machine help?",
        "More machines",
        more_machines.answer,
        health={"yes": "fact", "little": "fact", "no": "fact"},
    ),
    Question(
        "spikes",
        "Did the loss jump or run away?",
        "Loss spikes",
        loss_spikes.answer,
        plots=["training loss"],
    ),
    Question("memory", "Did memory come near its limit?", "Memory", memory.answer),
    Question("padding", "How much of the work goes to padding?", "Padding", padding.answer),
    Question(
        "quality",
        "How good are the translations, and how sure is that?",
        "Quality",
        quality.answer,
        plots=["BLEU"],
    ),
)
"""Reported only where there is something to report, the most expensive kinds of trouble first."""


@dataclass(frozen=True)
class Diagnosis:
    """Findings by the keys of their questions, in the order of the tables."""

    answers: Mapping[str, Finding]
    """To all of `QUESTIONS`."""
    also: Mapping[str, Finding]
    """To those of `ALSO` about which there is something to report."""


def diagnose(run: RunFacts) -> Diagnosis:
    """Answers all questions; one that fails on a damaged record costs no other."""
    also = ((question.key, _answer(question, run)) for question in ALSO)
    return Diagnosis(
        answers={q.key: _answer(q, run) or unknown("there is no answer") for q in QUESTIONS},
        also={key: finding for key, finding in also if finding},
    )


def question_of(key: str) -> Question:
    return next(question for question in (*QUESTIONS, *ALSO) if question.key == key)


def health_of(key: str, finding: Finding) -> Health:
    if finding.confidence == "none" or finding.verdict == UNKNOWN:
        return "open"
    otherwise: Health = "watch" if finding.advice else "fact"
    found = question_of(key).health.get(finding.verdict, otherwise)
    # Where there is something to do, it is not all good.
    return "watch" if found == "good" and finding.advice else found


def _answer(question: Question, run: RunFacts) -> Finding | None:
    try:
        finding = question.answer(run)
        if finding is None:
            return None
        return replace(finding, advice=[with_start(run, each) for each in finding.advice])
    except Exception as error:  # whatever a damaged record leads to
        message = " ".join(str(error).split()).rstrip(".")
        return unknown(
            "this part of the diagnosis failed on this record, which is a fault of ours "
            f"({type(error).__name__}{': ' + message if message else ''})"
        )
