"""Shows a progress bar while the events of runs are read, which takes seconds for long runs."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def reading(*runs: Path) -> Iterator[Callable[[int], None]]:
    """Yields a function to call with the number of bytes that were read."""
    from dragoman.console import Progress
    from dragoman.rundir import RunDir
    from dragoman.telemetry.read.events import event_files

    if not sys.stderr.isatty():
        yield lambda read_bytes: None
        return
    directories = [RunDir(run) for run in runs]
    # The reader reports what is wrong with those that cannot be read.
    sizes = [_size(path) for run in directories for _, _, path in event_files(run)]
    title = f"reading {' and '.join(str(run.events) for run in directories)}"
    with Progress(title, "bytes", sum(sizes), to_stderr=True) as progress:
        yield progress.advance


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
