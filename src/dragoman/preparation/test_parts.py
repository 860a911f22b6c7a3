"""Which lines of the prepared test text belong to which test set.

The sources of a recipe and the record of their text come in, a part for each source goes out.
"""

import logging

from dragoman.corpus.sources import describe, read_source
from dragoman.corpus.test_sets import ALL_TEST_SETS, set_names
from dragoman.errors import DragomanError
from dragoman.preparation.plan import HELD_OUT, Plan
from dragoman.rundir import write_whole
from dragoman.shards.passport import PASSPORT_NAME, PreparedData, SetPart

logger = logging.getLogger(__name__)


def parts_of(plan: Plan, pairs: list[int]) -> list[SetPart]:
    """Returns the parts, given the number of pairs of each test source."""
    sources = plan.config.data.test
    return [
        SetPart(test_set=name, description=describe(source), pairs=count)
        for source, name, count in zip(sources, set_names(sources), pairs, strict=True)
    ]


def pairs_of_sources(plan: Plan) -> list[int]:
    """Returns how many lines of the test text each source has.

    Records of older versions have only their sum: the sources are read once more then.
    """
    data = plan.config.data
    record = plan.held_out.record(HELD_OUT.index("test"))
    if known := record.get("pairs_of_sources"):
        return [int(count) for count in known]
    if len(data.test) == 1:
        return [int(record["pairs"])]
    return [sum(1 for _ in read_source(source, data, "test")) for source in data.test]


def with_named_sets(plan: Plan, prepared: PreparedData) -> PreparedData:
    """Returns prepared data whose passport has the test sets that the recipe names.

    Only the passport is written again: another name, or an older passport without any, changes
    neither text nor shards.
    """
    passport, sources = prepared.passport, plan.config.data.test
    test = passport.splits.get("test")
    if test is None:
        return prepared
    names = [part.test_set for part in test.parts] or [ALL_TEST_SETS]
    if names == set_names(sources):
        return prepared
    known = [part.pairs for part in test.parts]
    try:
        parts = parts_of(plan, known if len(known) == len(sources) else pairs_of_sources(plan))
        splits = {**passport.splits, "test": test.model_copy(update={"parts": parts})}
        passport = passport.model_copy(update={"splits": splits})
        write_whole(prepared.folder / PASSPORT_NAME, passport.model_dump_json(indent=2) + "\n")
    except DragomanError as error:
        # It is as usable as before there were names: without its raw text, or on a read-only disk.
        logger.warning(f"{error}; {prepared.folder} has its test sets as before until then")
        return prepared
    return PreparedData(prepared.folder, passport)
