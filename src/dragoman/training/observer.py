"""Whoever watches a run from within and says a line when something has changed.

Training stands upstream of the diagnosis and does not know it: the command that starts a run hands
in who watches it.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from dragoman.config import Config
from dragoman.telemetry.events import Evaluated, StepDone


class RankParts(NamedTuple):
    """Where one rank's time went in one step, in seconds: `StepDone.parts_s` of that rank."""

    data_s: float
    forward_s: float
    backward_s: float
    communication_s: float | None
    """None: it cannot be told from computing, as where the weights are sharded."""
    checkpoint_s: float
    optimizer_s: float
    rest_s: float

    @classmethod
    def of(cls, parts_s: Mapping[str, float]) -> "RankParts":
        """Returns the parts of an event; those that it does not name took no time."""
        return cls(
            data_s=parts_s.get("data", 0.0),
            forward_s=parts_s.get("forward", 0.0),
            backward_s=parts_s.get("backward", 0.0),
            communication_s=parts_s.get("communication"),
            checkpoint_s=parts_s.get("checkpoint", 0.0),
            optimizer_s=parts_s.get("optimizer", 0.0),
            rest_s=parts_s.get("rest", 0.0),
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
        """`hosts`: of each rank. `evaluations`: of earlier attempts."""
        ...


class Nobody:
    def after_step(self, done: StepDone, parts_by_rank: Sequence[RankParts]) -> str | None:
        return None

    def after_evaluation(self, evaluated: Evaluated) -> str | None:
        return None


class Careful:
    """Another observer, whose own errors stop no run: it says so once and looks no more."""

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
        self._observer = Nobody()
        return f"warning: the run cannot be judged any more ({error!r}); it goes on"


def nobody(
    config: Config,
    hosts: Sequence[str],
    gradient_bytes: int,
    evaluations: Sequence[Evaluated],
) -> Observer:
    return Nobody()
