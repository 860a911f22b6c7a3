"""evaluation-<name>.json: the scores of a trained model on one set of sentences. Without torch."""

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dragoman.errors import CorruptFileError
from dragoman.evaluation.scoring import LengthGroup, MetricScore
from dragoman.rundir import RunDir, read_json, write_json, write_sentences

SAMPLES = 20
"""Translations that are kept beside the scores, for a person to read."""


class BadTranslation(BaseModel):
    """One of the sentences that share the fewest characters with their reference."""

    model_config = ConfigDict(frozen=True)

    line: int
    chrf: float
    source: str
    translation: str
    reference: str


class ComparedMetric(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: str
    other: float
    """The other system's score."""
    gain: float
    """Of this system over the other."""
    low: float
    """With `high` the 95 % interval of the gain."""
    high: float
    p: float
    is_better: bool | None
    """None: the choice of sentences alone could have made the difference."""


class Comparison(BaseModel):
    model_config = ConfigDict(frozen=True)

    other: str
    """A run with step and beam, or a file of translations."""
    metrics: list[ComparedMetric]


class ScoredSplit(BaseModel):
    """Keys with defaults were added later: files of older versions lack them."""

    model_config = ConfigDict(frozen=True)

    split: str
    """Name of the set: validation and test, or the names of the test sets, of the recipe's."""
    origin: str = ""
    """Where its sentences come from."""
    test_place: int | None = None
    """Its place among the recipe's test sets, from 1; None: it is none of them, or unknown."""
    steps: list[int]
    """Of the checkpoints whose weights were averaged; one step: of that checkpoint alone."""
    sentences: int
    beam: int
    length_penalty: float | None = None
    bleu: float
    chrf: float
    bleu_signature: str
    chrf_signature: str
    bleu_low: float | None = None
    """With bleu_high the 95 % interval."""
    bleu_high: float | None = None
    metrics: list[MetricScore] = []
    """BLEU, chrF and TER, and what was asked for beside them."""
    by_length: list[LengthGroup] = []
    worst: list[BadTranslation] = []
    comparison: Comparison | None = None
    samples: list[dict[str, str]] = []
    texts_sha256: str = ""
    """Of all sentences and their translations."""


def texts_sha256(sources: Sequence[str], translations: Sequence[str]) -> str:
    """Returns a hash of both texts, the same before they are written to files and after."""
    lines = (text.replace("\n", " ") for text in (*sources, *translations))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def samples_of(
    sources: Sequence[str], translations: Sequence[str], references: Sequence[str], most: int
) -> list[dict[str, str]]:
    """Returns the first translations with source and reference, for a person to read."""
    return [
        {"source": source, "translation": translation, "reference": reference}
        for source, translation, reference in zip(sources, translations, references, strict=True)
    ][:most]


def write_scores(
    run: RunDir, scored: ScoredSplit, translations: Sequence[str], references: Sequence[str]
) -> None:
    """Writes the scores and both texts, so that runs can be compared sentence by sentence."""
    write_sentences(run.evaluation_text(scored.split, "translations"), translations)
    write_sentences(run.evaluation_text(scored.split, "references"), references)
    write_json(run.evaluation(scored.split), scored.model_dump(mode="json"))


def read_scores(run: RunDir, split: str) -> ScoredSplit:
    return ScoredSplit.model_validate(read_json(run.evaluation(split)))


def score_files(run: RunDir) -> list[Path]:
    """Returns the files of all scored sets, by name."""
    return sorted(run.root.glob(run.evaluation("*").name))


def in_order(scores: Iterable[ScoredSplit]) -> list[ScoredSplit]:
    """Returns test sets first, as in the recipe: they are the scores that count.

    A set "test" beside named ones is of an older version, which scored all test sets as one, or of
    an earlier recipe, and comes after them.
    """

    def key(scored: ScoredSplit) -> tuple[int, int, str]:
        if scored.split == "test":
            return 1, 0, ""
        if scored.test_place is not None:
            return 0, scored.test_place, scored.split
        return 2, 0, scored.split

    return sorted(scores, key=key)


def all_scores(run: RunDir) -> list[ScoredSplit]:
    """Returns all scores of a run that can be read, in order."""
    found = []
    for path in score_files(run):
        with suppress(CorruptFileError, ValueError):
            found.append(ScoredSplit.model_validate(read_json(path)))
    return in_order(found)
