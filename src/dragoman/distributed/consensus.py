"""Steps that all ranks take alike: all of them succeed, or all of them stop and one reports why."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

from dragoman.distributed.group import Group
from dragoman.errors import DragomanError, FailedElsewhereError, NamedRank, RunError, UserError

Result = TypeVar("Result")


def odd_ranks(values: Sequence[Any]) -> list[int] | None:
    """Returns the ranks whose value differs from that of more than half; None: no majority."""
    usual, count = Counter(map(repr, values)).most_common(1)[0]
    if 2 * count <= len(values):
        return None
    return [rank for rank, value in enumerate(values) if repr(value) != usual]


def all_or_none(group: Group, action: Callable[[], Result]) -> Result:
    """Returns what `action` returns on this rank, or stops all ranks where it fails on any.

    Collective: every rank must call.
    """
    failure: DragomanError | None = None
    try:
        result = action()
    except DragomanError as error:
        failure = error
    if group.ranks > 1:
        answers = group.gather([group.host, str(failure), failure.exit_code] if failure else None)
        failures = [(rank, *answer) for rank, answer in enumerate(answers) if answer]
        if failures:
            rank, host, sentence, exit_code = failures[0]
            kind = UserError if exit_code == UserError.exit_code else RunError
            if len(failures) == group.ranks and len({failure[2] for failure in failures}) == 1:
                raise_on_all_ranks(group, kind(sentence))
            culprit = NamedRank(rank, host)
            raise_on_all_ranks(group, kind(f"{culprit}: {sentence}", culprit=culprit))
    if failure:
        raise failure
    return result


def raise_on_all_ranks(group: Group, error: DragomanError) -> NoReturn:
    """Raises an error that all ranks have found alike; only rank 0 reports it."""
    raise error if group.leads else FailedElsewhereError(error.exit_code)
