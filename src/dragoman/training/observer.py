"""Whoever watches a run from within and says a line when something has changed.

Training stands upstream of the diagnosis and does not know it: the command that starts a run hands
in who watches it.
"""

from collections.abc import Sequence
from typing import Protocol

from dragoman.config import Config
from dragoman.telemetry.events import Evaluated, StepDone


class Observer(Protocol):
    """Called on rank 0, between two steps: whatever it does, training waits for it."""

    def after_step(self, done: StepDone, waits_s: Sequence[float]) -> str | None:
        """`waits_s`: what each rank has waited in this step's communication; empty: not known."""
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
    def after_step(self, done: StepDone, waits_s: Sequence[float]) -> str | None:
        return None

    def after_evaluation(self, evaluated: Evaluated) -> str | None:
        return None


class Careful:
    """Another observer, whose own errors stop no run: it says so once and looks no more."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def after_step(self, done: StepDone, waits_s: Sequence[float]) -> str | None:
        try:
            return self._observer.after_step(done, waits_s)
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
