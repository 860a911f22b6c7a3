"""The names of a recipe's test sets: its test sources come in, a name for each goes out.

Sources with the same `test_set` are one set. Without that key a source is a set of its own, named
after its file or its public name. A single source without a name is the set "test".
"""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from dragoman.config import (
    RESERVED_SET_NAMES,
    CorpusSource,
    DataSettings,
    GettextSource,
    JsonlSource,
    MtdataSource,
    PhrasebookSource,
    SacrebleuSource,
    TextSource,
    TmxSource,
    TsvSource,
)
from dragoman.corpus.text import COMPRESSIONS

ALL_TEST_SETS = "test"
"""What all test sets together are called, and a single one without a name."""
LONGEST_NAME = 100


def set_names(sources: Sequence[CorpusSource]) -> list[str]:
    """Returns the name of the set that each source belongs to."""
    if len(sources) == 1 and not sources[0].test_set:
        return [ALL_TEST_SETS]
    taken = {source.test_set for source in sources} | set(RESERVED_SET_NAMES)
    names = []
    for source in sources:
        name = source.test_set or _free(_usual_name(source), taken)
        taken.add(name)
        names.append(name)
    return names


def sources_of_set(data: DataSettings, name: str) -> list[CorpusSource]:
    """Returns the sources of validation, of all test sets, or of one; none: it is another set."""
    if name == "validation":
        return list(data.validation)
    if name == ALL_TEST_SETS:
        return list(data.test)
    names = set_names(data.test)
    return [source for source, of in zip(data.test, names, strict=True) if of == name]


def name_of_file(file: str) -> str:
    """Returns the name of a file or an address without endings of compression, language or kind."""
    name = PurePosixPath(file).name
    for ending in COMPRESSIONS:
        name = name.removesuffix(ending)
    return as_name(PurePosixPath(name).stem)


def as_name(text: str) -> str:
    """Returns a text with only those characters that may be in the name of a set."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text)


def _usual_name(source: CorpusSource) -> str:
    match source:
        case TextSource():
            name = name_of_file(source.source)
        case TsvSource() | JsonlSource() | TmxSource():
            name = name_of_file(source.file)
        case GettextSource():
            name = as_name(PurePosixPath(source.folder).name)
        case MtdataSource() | SacrebleuSource():
            name = as_name(source.name)
        case PhrasebookSource():
            name = source.kind
    return re.sub(r"^[^A-Za-z0-9]+", "", name) or source.kind


def _free(name: str, taken: set[str]) -> str:
    """Returns the name, with a number if it is taken."""
    name = name[: LONGEST_NAME - 8]
    number = 1 if name in RESERVED_SET_NAMES else 2
    free = name
    while free in taken:
        free, number = f"{name}-{number}", number + 1
    return free
