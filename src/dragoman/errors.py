"""What can go wrong, as one tree; every message is a sentence that says what to do next.

DragomanError
├── UserError              the command, the recipe or a file given by the user; exit code 2
│   └── ConfigError        a recipe or a --set
└── RunError               the work itself could not be done; exit code 1
    ├── CorruptFileError   a file of ours that does not verify
    ├── StorageError       no space left, no right to write
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
        """The one rank that it happened to; None: several, or nobody knows."""


class UserError(DragomanError):
    exit_code = 2


class ConfigError(UserError):
    pass


class RunError(DragomanError):
    pass


class CorruptFileError(RunError):
    pass


class StorageError(RunError):
    """The system would not write: `reason` is what it said."""

    def __init__(self, path: Path, doing: str, reason: str) -> None:
        super().__init__(
            f"{path}: {reason} while {doing}; free some space or name a folder that can be "
            "written, then run the same command again"
        )
        self.path, self.doing, self.reason = path, doing, reason

    def __reduce__(self) -> tuple[type["StorageError"], tuple[Path, str, str]]:
        # So that it comes whole out of another process; exceptions are made again from their parts.
        return StorageError, (self.path, self.doing, self.reason)


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
    """Turn the system's refusal to write into a sentence about what a person knows: `path`.

    Nested, the outermost speaks: not of a temporary file, but of what it was to become.
    """
    try:
        yield
    except StorageError as error:
        raise StorageError(path, doing, error.reason) from error
    except OSError as error:
        raise StorageError(path, doing, error.strerror or str(error)) from error
