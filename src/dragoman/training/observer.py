"""Observers of a run: they see its steps and evaluations, and return lines for its log.

Training stands upstream of the diagnosis and does not import it: whoever starts a run hands in what
watches it.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from dragoman.config import Config
from dragoman.telemetry.events import Evaluated, StepDone


class RankParts(NamedTuple):
    """Where one rank's time went in one step, in seconds: as `StepDone` of that rank has it."""

    data_s: float
    forward_s: float
    backward_s: float
    communication_s: float | None
    """None: it cannot be separated from computing, as where the weights are sharded."""
    agreement_s: float
    """In the step's small message: a rank that had its sums before the others waits here."""
    checkpoint_s: float
    optimizer_s: float
    rest_s: float
    ready_s: float
    """No part: when it had its last gradients, counted from the agreement before."""

    @classmethod
    def of(cls, done: StepDone) -> "RankParts":
        """Returns the parts of an event; those that it does not name took no time."""
        parts_s = done.parts_s
        return cls(
            data_s=parts_s.get("data", 0.0),
            forward_s=parts_s.get("forward", 0.0),
            backward_s=parts_s.get("backward", 0.0),
            communication_s=parts_s.get("communication"),
            agreement_s=parts_s.get("agreement", 0.0),
            checkpoint_s=parts_s.get("checkpoint", 0.0),
            optimizer_s=parts_s.get("optimizer", 0.0),
            rest_s=parts_s.get("rest", 0.0),
            ready_s=done.ready_s or 0.0,
        )


class Observer(Protocol):
    """Called on rank 0, between two steps: whatever it does, training waits for it."""

    def after_step(self, done: StepDone, parts_by_rank: Sequence[RankParts]) -> str | None:
        """Takes rank 0's event of a step and where each rank's time went in the same step.

        That is the step before the newest: its parts are known when it is over, and reach rank 0
        with the message of the next step. The last step of an attempt is not observed.
        """
        ...

    def after_evaluation(self, evaluated: Evaluated) -> str | None: ...


class Watch(Protocol):
    def __call__(
        self,
        config: Config,
        hosts: Sequence[str],
        gradient_bytes: int,
        evaluations: Sequence[Evaluated],
    ) -> Observer:
        """Returns an observer; `hosts` are of each rank, `evaluations` of earlier attempts."""
        ...


class NullObserver:
    def after_step(self, done: StepDone, parts_by_rank: Sequence[RankParts]) -> str | None:
        return None

    def after_evaluation(self, evaluated: Evaluated) -> str | None:
        return None


class SafeObserver:
    """Wraps an observer whose own errors must not stop a run: after the first it is not called."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def after_step(self, done: StepDone, parts_by_rank: Sequence[RankParts]) -> str | None:
        try:
            return self._observer.after_step(done, parts_by_rank)
        except Exception as error:
            return self._give_up(error)

    def after_evaluation(self, evaluated: Evaluated) -> str | None:
        try:
            return self._observer.after_evaluation(evaluated)
        except Exception as error:
            return self._give_up(error)

    def _give_up(self, error: Exception) -> str:
        self._observer = NullObserver()
        return f"warning: the run cannot be judged any more ({error!r}); it goes on"


def watch_nothing(
    config: Config,
    hosts: Sequence[str],
    gradient_bytes: int,
    evaluations: Sequence[Evaluated],
) -> Observer:
    return NullObserver()
