"""The eleven questions that people ask about a run, and the answers to them, in their order."""

from collections.abc import Callable, Mapping

from dragoman.diagnosis.answers import (
    checkpoint_files,
    checkpoint_size,
    devices,
    duration,
    learning_rate,
    network,
    overfitting,
    step_time,
    traffic,
    trained,
    training_set,
)
from dragoman.diagnosis.findings import Finding, unknown
from dragoman.diagnosis.run.facts import RunFacts

QUESTIONS: Mapping[str, str] = {
    "duration": "How long did the training run take?",
    "trained": "Is the model fully trained? How can you tell?",
    "overfitting": "Is it overfitting?",
    "devices": "Were the GPUs (or CPUs) fully used?",
    "network": "What was the network traffic? Was the network the bottleneck?",
    "learning-rate": "What does the learning-rate plot show, and which setting makes it so?",
    "training-set": "How big is the training set, in megabytes and in lines?",
    "checkpoint-files": "Which files is a checkpoint made of?",
    "checkpoint-size": "How big is a checkpoint, in megabytes?",
    "step-time": "How long did an average step take?",
    "traffic": "How does that go together with the network traffic between the nodes?",
}
"""Key -> question."""

_ANSWERS: Mapping[str, Callable[[RunFacts], Finding]] = {
    "duration": duration.answer,
    "trained": trained.answer,
    "overfitting": overfitting.answer,
    "devices": devices.answer,
    "network": network.answer,
    "learning-rate": learning_rate.answer,
    "training-set": training_set.answer,
    "checkpoint-files": checkpoint_files.answer,
    "checkpoint-size": checkpoint_size.answer,
    "step-time": step_time.answer,
    "traffic": traffic.answer,
}


def answers_of(run: RunFacts) -> list[Finding]:
    """A record that one answer cannot cope with costs that answer and no other."""
    return [_answer(key, question, run) for key, question in QUESTIONS.items()]


def _answer(key: str, question: str, run: RunFacts) -> Finding:
    try:
        return _ANSWERS[key](run)
    except Exception as error:  # whatever a damaged record leads to
        return unknown(key, question, because_of(error))


def because_of(error: Exception) -> str:
    """For whoever has to mend it; the rest of the report is none the worse."""
    said = " ".join(str(error).split()).rstrip(".")
    return (
        "this part of the diagnosis failed on this record, which is a fault of ours "
        f"({type(error).__name__}{': ' + said if said else ''})"
    )
