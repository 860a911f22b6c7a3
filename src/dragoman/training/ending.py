"""Why an attempt ends: planned, asked to, or failed; always as the event that records it. Pure."""

import errno
from dataclasses import replace

from dragoman.config import Config
from dragoman.errors import (
    DivergedError,
    DragomanError,
    LostPeerError,
    NamedRank,
    OutOfMemoryError,
    StorageError,
    WeightsDifferError,
)
from dragoman.telemetry.events import AttemptEnded, EndCause, EndState
from dragoman.training.interruption import Stop
from dragoman.training.state import RunState

_CAUSES: dict[type[BaseException], EndCause] = {
    LostPeerError: "lost-rank",
    DivergedError: "diverged",
    OutOfMemoryError: "out-of-memory",
    WeightsDifferError: "weights-differ",
}


def planned_ending(config: Config, last_step: int | None, state: RunState) -> AttemptEnded | None:
    """Returns the ending of a stop rule that holds; a function of what all ranks share.

    `last_step` is where training.steps or training.epochs end the run, if they do.
    """
    settings = config.training
    if settings.steps is not None and state.step >= settings.steps:
        return _finished(state, "steps", f"training.steps = {settings.steps:,} are done")
    if last_step is not None and state.step >= last_step:
        return _finished(state, "epochs", f"training.epochs = {settings.epochs} are done")
    if settings.hours is not None and state.elapsed_s >= 3600 * settings.hours:
        return _finished(state, "hours", f"training.hours = {settings.hours:g} have passed")
    if settings.patience is not None and state.evaluations_since_best >= settings.patience:
        reason = f"no better {config.evaluation.best_by} in {settings.patience} evaluations"
        return _finished(state, "patience", reason)
    return None


def preempted(step: int, stop: Stop, ranks: int) -> AttemptEnded:
    reason = stop.request.reason
    if stop.asked and ranks > 1:
        reason = f"{stop.asked}: {reason}"
    return _ended(step, "preempted", reason, stop.request.cause, stop.asked)


def failed(step: int, error: BaseException) -> AttemptEnded:
    culprit = error.culprit if isinstance(error, DragomanError) else None
    cause = _CAUSES.get(type(error), "error")
    ended = _ended(step, "failed", f"{type(error).__name__}: {error}", cause, culprit)
    return replace(ended, could_not_write=_could_not_write(error))


def _could_not_write(error: BaseException) -> bool:
    is_full = isinstance(error, OSError) and error.errno in (
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EROFS,
    )
    return is_full or isinstance(error, StorageError)


def _finished(state: RunState, cause: EndCause, reason: str) -> AttemptEnded:
    return _ended(state.step, "finished", reason, cause, None)


def _ended(
    step: int, state: EndState, reason: str, cause: EndCause, culprit: NamedRank | None
) -> AttemptEnded:
    rank, host = culprit or (None, "")
    return AttemptEnded(step, state, reason, cause, rank, host)
