"""The stage of clean text: slices of the corpus come in, tasks that clean them go out."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from dragoman.config import CleaningSettings, CorpusSource, DataSettings
from dragoman.corpus.cleaning import clean, keys
from dragoman.preparation.plan import Plan
from dragoman.preparation.slices import Slice, read_slice, slices
from dragoman.preparation.stage import as_text
from dragoman.preparation.task import FileRange, Input, Inputs, Result, Task


class CleanSettings(NamedTuple):
    part: Slice
    """Without its texts, which are the inputs."""
    source: CorpusSource
    data: DataSettings
    cleaning: CleaningSettings


def clean_tasks(
    plan: Plan, is_wanted: Callable[[int], bool] = lambda number: True
) -> Iterator[Task]:
    """Yields a task for each slice that is not clean yet."""
    data, stage = plan.config.data, plan.clean

    def is_missing(number: int) -> bool:
        return is_wanted(number) and not stage.is_done(number)

    for part in slices(data, plan.index, is_missing, plan.refuse_changed):
        source = data.train[part.source_number]
        settings = CleanSettings(part._replace(texts=[]), source, data, plan.config.cleaning)
        inputs = {
            f"text {number}": _as_hashed(text, plan) for number, text in enumerate(part.texts)
        }
        yield Task(clean_slice, settings, inputs, stage, part.number)


def _as_hashed(text: Input, plan: Plan) -> Input:
    if isinstance(text, FileRange):
        return text._replace(status=plan.status_of(text.path))
    return text


def clean_slice(settings: CleanSettings, inputs: Inputs) -> Result:
    part = settings.part._replace(texts=list(inputs.values()))
    pairs = read_slice(part, settings.source, settings.data)
    cleaned = clean(pairs, settings.cleaning, part.languages)
    return Result(
        record={
            "source": part.source_number,
            "pairs_in": len(pairs),
            "pairs": len(cleaned.pairs),
            "dropped": cleaned.dropped,
            "examples": cleaned.examples,
        },
        contents=as_text(cleaned.pairs)
        | {"keys": keys(cleaned.pairs, settings.cleaning).tobytes()},
        pairs=len(pairs),
    )
