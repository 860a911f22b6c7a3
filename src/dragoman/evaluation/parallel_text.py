"""Sentences with their reference translations, from a recipe, from files or by a public name."""

import re
from typing import NamedTuple, TypeVar

from pydantic import ValidationError

from dragoman.config import (
    Config,
    CorpusSource,
    SacrebleuSource,
    TextSource,
    TsvSource,
    problems_of,
)
from dragoman.corpus.sources import describe, read_source
from dragoman.corpus.test_sets import ALL_TEST_SETS, as_name, name_of_file, set_names
from dragoman.errors import UserError
from dragoman.shards.passport import PreparedData

OF_RECIPE = (ALL_TEST_SETS, "validation")

_Source = TypeVar("_Source", TextSource, TsvSource, SacrebleuSource)


class ParallelText(NamedTuple):
    name: str
    """Names the files with its scores: evaluation-<name>.json."""
    origin: str
    sources: list[str]
    references: list[str]
    test_place: int | None = None
    """Its place among the recipe's test sets, from 1; None: it is none of them."""


def of_recipe(config: Config, name: str) -> list[ParallelText]:
    """Returns sets of the run's own data: validation, all test sets ("test"), or one of them."""
    prepared = PreparedData.open(config.prepared_folder)
    there = prepared.passport.test_sets
    if name not in (ALL_TEST_SETS, *there) and name in set_names(config.data.test):
        raise UserError(
            f"{prepared.folder}: has its test sets in one, since it was prepared by an older "
            "version or for another recipe; run `dragoman prepare` with the recipe to have them "
            "apart"
        )
    is_one_for_all = there == [ALL_TEST_SETS] and len(config.data.test) > 1
    texts = []
    for each in there if name == ALL_TEST_SETS and there else [name]:
        place = there.index(each) + 1 if each in there and not is_one_for_all else None
        origin = f"test set {each}" if each in there and each != ALL_TEST_SETS else f"{each} set"
        texts.append(ParallelText(each, f"{origin} of the recipe", *prepared.text(each), place))
    return texts


def from_files(config: Config, source: str, reference: str, name: str = "") -> ParallelText:
    """Reads two text files, plain or compressed, line by line."""
    given = _described(TextSource, kind="text", source=source, target=reference)
    return _read(config, given, name or name_of_file(source))


def from_table(config: Config, file: str, columns: tuple[int, int], name: str = "") -> ParallelText:
    """Reads two columns of a table, counted from 1, separated by tabs."""
    given = _described(
        TsvSource, kind="tsv", file=file, source_column=columns[0], target_column=columns[1]
    )
    return _read(config, given, name or name_of_file(file))


def from_sacrebleu(config: Config, test_set: str, name: str = "") -> ParallelText:
    """Returns a public test set, such as wmt14/full, in the run's languages."""
    given = _described(SacrebleuSource, kind="sacrebleu", name=test_set)
    return _read(config, given, name or as_name(test_set))


def _described(source_type: type[_Source], **named: object) -> _Source:
    """Returns what was named as a source of sentences, or raises UserError where none can be so."""
    try:
        return source_type.model_validate(named)
    except ValidationError as error:
        raise UserError(f"{problems_of(error)}; name another") from None


def _read(config: Config, given: CorpusSource, name: str) -> ParallelText:
    if name in (*OF_RECIPE, *set_names(config.data.test)):
        raise UserError(
            f"the name {name!r} stands for the recipe's own {name} set; give another with --name"
        )
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,99}", name, re.ASCII):
        raise UserError(
            f"{name!r} cannot name a file with scores; give a name of letters, digits, dots, "
            "dashes and underscores with --name"
        )
    # The user names files as they are seen from here, not from the folder of the training data.
    data = config.data.model_copy(update={"folder": "."})
    pairs = list(read_source(given, data, "test"))
    if blank := [str(n) for n, pair in enumerate(pairs, start=1) if not pair.target]:
        raise UserError(
            f"{describe(given)}: no reference in line {blank[0]}"
            f"{f' and {len(blank) - 1} more' if blank[1:] else ''}; remove such lines from both "
            "sides, since nothing can be scored there"
        )
    return ParallelText(
        name, describe(given), [pair.source for pair in pairs], [pair.target for pair in pairs]
    )
