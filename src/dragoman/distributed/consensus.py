"""What all ranks do alike: they succeed together, or all of them stop and one says why."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from dragoman.distributed.group import Group
from dragoman.errors import DragomanError, RunError, SaidElsewhere, UserError

Result = TypeVar("Result")


def odd_ranks(values: Sequence[Any]) -> list[int] | None:
    """Those that differ from more than half of all; None: no value has so many."""
    usual, count = Counter(map(repr, values)).most_common(1)[0]
    if 2 * count <= len(values):
        return None
    return [rank for rank, value in enumerate(values) if repr(value) != usual]


def named_rank(rank: int, host: str) -> str:
    return f"rank {rank} on {host}"


def together(group: Group, action: Callable[[], Result]) -> Result:
    """What `action` returns on this rank; where it fails on any, all stop and one says why.

    Collective: every rank must call.
    """
    failure: DragomanError | None = None
    try:
        result = action()
    except DragomanError as error:
        failure = error
    if group.ranks > 1:
        told = group.gather([group.host, str(failure), failure.exit_code] if failure else None)
        failures = [(rank, *content) for rank, content in enumerate(told) if content]
        if failures:
            rank, host, sentence, exit_code = failures[0]
            everywhere = len(failures) == group.ranks and len({f[2] for f in failures}) == 1
            where = "" if everywhere else f"{named_rank(rank, host)}: "
            kind = UserError if exit_code == UserError.exit_code else RunError
            raise said_once(group, kind(f"{where}{sentence}"))
    if failure:
        raise failure
    return result


def said_once(group: Group, error: DragomanError) -> DragomanError:
    """What each rank raises where all have found the same: only rank 0 says it."""
    return error if group.leads else SaidElsewhere(error.exit_code)
