"""All errors, as one tree; every message is a sentence with what to do next.

DragomanError
├── UserError              the command, the recipe or a file given by the user; exit code 2
│   └── ConfigError        a recipe or a --set
├── NotStartedError        a run that would wait or cost more than it may; exit code 3
└── RunError               the work itself could not be done; exit code 1
    ├── CorruptFileError   a file of ours that does not verify
    ├── StorageError       no space left, no right to write
    ├── RemoteError        an object store that refuses, or does not answer
    ├── LostPeerError      another rank has gone away
    ├── DivergedError      the loss is lost, and rollbacks did not help
    ├── OutOfMemoryError   even single pairs do not fit into a rank's memory
    ├── WeightsDifferError replicas that should be equal hold different weights
    └── FailedElsewhereError  another rank has failed and reports why; this one only ends with it
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple


class NamedRank(NamedTuple):
    rank: int
    host: str

    def __str__(self) -> str:
        return f"rank {self.rank} on {self.host}"


class DragomanError(Exception):
    exit_code = 1

    def __init__(self, *message: str, culprit: NamedRank | None = None) -> None:
        super().__init__(*message)
        self.culprit = culprit
        """The one rank that it happened to; None if there were several, or it is unknown."""


class UserError(DragomanError):
    exit_code = 2


class ConfigError(UserError):
    pass


class NotStartedError(DragomanError):
    exit_code = 3


class RunError(DragomanError):
    pass


class CorruptFileError(RunError):
    pass


class StorageError(RunError):
    """The system refused to write, for this `reason`."""

    def __init__(self, path: Path, doing: str, reason: str) -> None:
        super().__init__(
            f"{path}: {reason} while {doing}; free some space or name a folder that can be "
            "written, then run the same command again"
        )
        self.path, self.doing, self.reason = path, doing, reason

    def __reduce__(self) -> tuple[type["StorageError"], tuple[Path, str, str]]:
        # Lets it be pickled: exceptions of other processes are rebuilt from these arguments.
        return StorageError, (self.path, self.doing, self.reason)


class RemoteError(RunError):
    """An object store has not done what it was asked for, for a reason of this `kind`."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.message, self.kind = message, kind

    def __reduce__(self) -> tuple[type["RemoteError"], tuple[str, str]]:
        return RemoteError, (self.message, self.kind)


class LostPeerError(RunError):
    pass


class DivergedError(RunError):
    pass


class OutOfMemoryError(RunError):
    pass


class WeightsDifferError(RunError):
    pass


class FailedElsewhereError(RunError):
    def __init__(self, exit_code: int) -> None:
        super().__init__()
        self.exit_code = exit_code


@contextmanager
def storage_errors(path: Path, doing: str) -> Iterator[None]:
    """Turns the system's refusal to write into an error about `path`, which the user knows.

    If nested, the outermost wins: it names the final file, not a temporary one.
    """
    try:
        yield
    except StorageError as error:
        raise StorageError(path, doing, error.reason) from error
    except OSError as error:
        raise StorageError(path, doing, error.strerror or str(error)) from error
