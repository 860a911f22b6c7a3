"""About how many pairs there are, for the time left: training sources come in, a number goes out.

The beginning of each file is read. To count all of its lines would take a good part of the time
that cleaning takes.
"""

from contextlib import suppress
from itertools import islice
from pathlib import Path

from dragoman.config import DataSettings, GettextSource, PhrasebookSource, TmxSource
from dragoman.corpus.sources import files_of
from dragoman.corpus.text import COMPRESSIONS, decode_lines, open_binary
from dragoman.errors import DragomanError

LINES_READ = 2000
EXPANSION = 3.0
"""Of compressed text, roughly."""


def expected_pairs(data: DataSettings) -> int | None:
    """Returns about how many pairs there are; None: a source has no lines to go by."""
    if any(isinstance(source, GettextSource | TmxSource) for source in data.train):
        return None
    with suppress(DragomanError, OSError):  # whoever reads all of it says what is wrong
        return sum(
            source.pairs
            if isinstance(source, PhrasebookSource)
            else expected_lines(files_of(source, data)[0])
            for source in data.train
        )
    return None


def expected_lines(path: Path) -> int:
    with open_binary(path) as file:
        lines = islice(decode_lines(file, str(path)), LINES_READ)
        first = [len(line.encode()) + 1 for line in lines]
    if len(first) < LINES_READ:
        return len(first)
    expansion = EXPANSION if path.name.endswith(COMPRESSIONS) else 1.0
    return max(len(first), round(path.stat().st_size * expansion * len(first) / sum(first)))
