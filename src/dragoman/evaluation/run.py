"""Evaluates a trained run: translates a held-out split, scores it and keeps the result."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeAlias

from dragoman.config import load_config
from dragoman.decoding.trained import load_trained
from dragoman.decoding.translator import translate
from dragoman.distributed.group import pick_device
from dragoman.evaluation.metrics import score
from dragoman.evaluation.scores import SAMPLES, ScoredSplit, samples_of, write_scores
from dragoman.rundir import RunDir
from dragoman.shards.passport import PreparedData

ShowProgress: TypeAlias = Callable[[int], AbstractContextManager[Callable[[int], None]]]
"""Given the number of sentences, opens what is called with how many more have been translated."""


def show_nothing(total: int) -> AbstractContextManager[Callable[[int], None]]:
    return nullcontext(lambda count: None)


def evaluate_run(
    run: RunDir,
    split: str = "test",
    checkpoint: str = "best",
    average: int = 1,
    beam: int | None = None,
    show_progress: ShowProgress = show_nothing,
) -> ScoredSplit:
    """Returns the scores on test or validation, after writing them into the run directory.

    `checkpoint` is best, latest or a step; `average` > 1 takes the mean of so many of the newest.
    """
    device = pick_device("auto")
    trained = load_trained(run, checkpoint, average, device)
    config = load_config(run.config)
    sources, references = PreparedData.open(config.prepared_folder).text(split)
    settings = config.decoding.model_copy(update={"beam": beam} if beam else {})
    with show_progress(len(sources)) as advance:
        translations = translate(
            trained.model,
            trained.tokenizer,
            sources,
            settings,
            device,
            done=advance,
            longest=config.data.max_length,
        )
    scored = ScoredSplit(
        split=split,
        steps=trained.steps,
        sentences=len(sources),
        beam=settings.beam,
        length_penalty=settings.length_penalty,
        **score(translations, references, config.data.target_language)._asdict(),
        samples=samples_of(sources, translations, references, SAMPLES),
    )
    write_scores(run, scored, translations, references)
    return scored
