"""What can go wrong, as one tree; every message is a sentence that says what to do next.

DragomanError
├── UserError              the command, the recipe or a file given by the user; exit code 2
│   └── ConfigError        a recipe or a --set
└── RunError               the work itself could not be done; exit code 1
    ├── CorruptFileError   a file of ours that does not verify
    └── StorageError       no space left, no right to write
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class DragomanError(Exception):
    exit_code = 1


class UserError(DragomanError):
    exit_code = 2


class ConfigError(UserError):
    pass


class RunError(DragomanError):
    pass


class CorruptFileError(RunError):
    pass


class StorageError(RunError):
    pass


@contextmanager
def storage_errors(path: Path, doing: str) -> Iterator[None]:
    """Turn the system's refusal to write `path` into a sentence; `doing` completes "while ..."."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        place = error.filename or path
        raise StorageError(
            f"{place}: {reason} while {doing}; "
            "free some space or name a folder that can be written, then run the same command again"
        ) from error
