"""Evaluates a trained run: translates a set of sentences, scores it and keeps the result."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeAlias

from dragoman.config import Config, DecodingSettings, load_config
from dragoman.console import Progress, waiting
from dragoman.corpus.text import read_lines
from dragoman.decoding.engine import Engine, EngineName, Precision
from dragoman.decoding.engines import open_engine
from dragoman.decoding.trained import Chosen, choose
from dragoman.decoding.translate import translate
from dragoman.distributed.group import pick_device
from dragoman.errors import CorruptFileError, UserError
from dragoman.evaluation.comet import Comet, check_comet, comet_score
from dragoman.evaluation.parallel_text import ParallelText, of_recipe
from dragoman.evaluation.published import published_bleu
from dragoman.evaluation.scores import (
    SAMPLES,
    BadTranslation,
    ComparedMetric,
    Comparison,
    ScoredSplit,
    read_scores,
    samples_of,
    texts_sha256,
    write_scores,
)
from dragoman.evaluation.scoring import (
    MetricScore,
    all_metrics,
    by_length,
    compare,
    measured,
    worst,
)
from dragoman.rundir import RunDir, ensure_writable, read_sentences

ShowProgress: TypeAlias = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""Given the name of a set and its number of sentences, opens what is called with how many more have
been translated."""


class Weights(NamedTuple):
    """Which weights translate, and how they search."""

    checkpoint: str = "best"
    """best, latest or a step."""
    average: int = 1
    """Above 1: the mean of so many of the newest checkpoints."""
    beam: int | None = None
    """None: that of the recipe."""
    engine: EngineName = "auto"
    precision: Precision = "float32"


class Extras(NamedTuple):
    """What is measured beside BLEU, chrF and TER."""

    published: bool = False
    """BLEU of lower-cased text in tokens of Moses."""
    comet: Comet | None = None
    against: Path | None = None
    """Another run, or a file of translations of the same sentences."""
    worst: int = SAMPLES


BEST = Weights()
NO_EXTRAS = Extras()


def show_nothing(name: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
    return nullcontext(lambda count: None)


def evaluate_run(
    run: RunDir,
    texts: Sequence[ParallelText] | str = "test",
    weights: Weights = BEST,
    extras: Extras = NO_EXTRAS,
    show_progress: ShowProgress = show_nothing,
) -> list[ScoredSplit]:
    """Returns the scores on each text, after writing them into the run directory.

    A name stands for sets of the recipe: validation, a test set, or "test" for all of these.
    """
    config = load_config(run.config)
    texts = of_recipe(config, texts) if isinstance(texts, str) else texts
    # Before the translation, which takes long.
    for text in texts:
        ensure_writable(run.evaluation(text.name))
    if extras.comet:
        check_comet(extras.comet)
    if extras.against and not extras.against.is_dir() and len(texts) > 1:
        names = ", ".join(text.name for text in texts)
        raise UserError(
            f"{extras.against}: holds translations of one set, and {len(texts)} are to be scored; "
            f"name one of them with --split: {names}"
        )
    others = [
        _other(extras.against, text, weights, show_progress) if extras.against else None
        for text in texts
    ]
    translator = _open(run, config, weights)
    return [
        _evaluate(run, config, text, other, translator, extras, show_progress)
        for text, other in zip(texts, others, strict=True)
    ]


def _evaluate(
    run: RunDir,
    config: Config,
    text: ParallelText,
    other: "_Other | None",
    translator: "_Opened",
    extras: Extras,
    show_progress: ShowProgress,
) -> ScoredSplit:
    translated = _translate(translator, text, show_progress)
    language = config.data.target_language
    both = translated.sentences, text.references
    every = all_metrics(language)
    with Progress(f"scoring {text.name}", "metrics", len(every)) as progress, progress.ticking():
        metrics = []
        for metric in every:
            metrics.append(measured(metric, *both))
            progress.advance()
    bleu, chrf = metrics[:2]
    with waiting(f"scoring {text.name} by length"):
        lengths = by_length(*both, language)
    scored = ScoredSplit(
        split=text.name,
        origin=text.origin,
        test_place=text.test_place,
        steps=translated.steps,
        sentences=len(text.sources),
        beam=translated.beam,
        length_penalty=config.decoding.length_penalty,
        bleu=bleu.score,
        chrf=chrf.score,
        bleu_signature=bleu.signature,
        chrf_signature=chrf.signature,
        bleu_low=bleu.low,
        bleu_high=bleu.high,
        metrics=[*metrics, *_extra_metrics(extras, text, translated.sentences, language)],
        by_length=lengths,
        worst=_worst(text, translated.sentences, extras.worst),
        comparison=_comparison(other, *both, language) if other else None,
        samples=samples_of(text.sources, *both, SAMPLES),
        texts_sha256=texts_sha256(text.sources, translated.sentences),
    )
    write_scores(run, scored, *both)
    return scored


class Translated(NamedTuple):
    sentences: list[str]
    steps: list[int]
    beam: int


class _Opened(NamedTuple):
    """A model that is ready to translate several sets."""

    engine: Engine
    chosen: Chosen
    settings: DecodingSettings
    longest: int


def _open(run: RunDir, config: Config, weights: Weights) -> _Opened:
    with waiting("loading the model"):
        chosen = choose(run, weights.checkpoint, weights.average)
        engine = open_engine(run, chosen, pick_device("auto"), weights.engine, weights.precision)
    changed = {"beam": weights.beam} if weights.beam else {}
    settings = config.decoding.model_copy(update=changed)
    return _Opened(engine, chosen, settings, config.data.max_length)


def _translate(opened: _Opened, text: ParallelText, show_progress: ShowProgress) -> Translated:
    with show_progress(text.name, len(text.sources)) as advance:
        sentences = translate(
            opened.engine,
            opened.chosen.tokenizer,
            text.sources,
            opened.settings,
            advance,
            opened.longest,
        )
    return Translated(sentences, opened.chosen.steps, opened.settings.beam)


def _extra_metrics(
    extras: Extras, text: ParallelText, translations: Sequence[str], language: str
) -> list[MetricScore]:
    found = []
    if extras.published:
        published = published_bleu(translations, text.references, language)
        found.append(replace(published, name="BLEU, published form"))
    if extras.comet:
        with waiting(f"scoring {text.name} with COMET"):
            found.append(comet_score(extras.comet, text.sources, translations, text.references))
    return found


def _worst(text: ParallelText, translations: Sequence[str], most: int) -> list[BadTranslation]:
    return [
        BadTranslation(
            line=sentence.number,
            chrf=sentence.chrf,
            source=text.sources[sentence.number - 1],
            translation=translations[sentence.number - 1],
            reference=text.references[sentence.number - 1],
        )
        for sentence in worst(translations, text.references, most)
    ]


class _Other(NamedTuple):
    name: str
    """A file, or a run with the step and beam of its translations."""
    translations: list[str]


def _other(
    against: Path, text: ParallelText, weights: Weights, show_progress: ShowProgress
) -> _Other:
    """Returns the other system's translations of the same sentences.

    Another run translates them now, unless it has kept its translations of exactly this text.
    """
    if against.is_dir():
        run = RunDir(against)
        if not run.config.exists():
            raise UserError(f"{against}: is no run; name the folder of one, or a file")
        translated = _kept(run, text)
        if translated is None:
            best = weights._replace(checkpoint=BEST.checkpoint, average=BEST.average)
            opened = _open(run, load_config(run.config), best)
            translated = _translate(opened, text, show_progress)
        steps = " + ".join(f"{step:,}" for step in translated.steps)
        return _Other(f"{against} (step {steps}, beam {translated.beam})", translated.sentences)
    lines = list(read_lines(against))
    if len(lines) != len(text.references):
        raise UserError(
            f"{against}: has {len(lines):,} lines, and {text.name} has {len(text.references):,} "
            "sentences; give one translation a line, in the same order"
        )
    return _Other(str(against), lines)


def _kept(run: RunDir, text: ParallelText) -> Translated | None:
    """Returns the translations of a text that a run has kept, if there are any."""
    sentences = read_sentences(run.evaluation_text(text.name, "translations"))
    if read_sentences(run.evaluation_text(text.name, "references")) != text.references:
        return None
    try:
        scored = read_scores(run, text.name)
    except (CorruptFileError, ValueError):
        return None
    if sentences is None or len(sentences) != len(text.sources):
        return None
    # Other sources may have the same references, and after a crash between the files, translations
    # may be of another evaluation than the scores.
    if scored.texts_sha256 != texts_sha256(text.sources, sentences):
        return None
    return Translated(sentences, scored.steps, scored.beam)


def _comparison(
    other: _Other,
    ours: Sequence[str],
    references: Sequence[str],
    language: str,
) -> Comparison:
    return Comparison(
        other=other.name,
        metrics=[
            ComparedMetric(
                name=each.name,
                other=each.other,
                **each.difference._asdict(),
                is_better=each.is_better,
            )
            for each in compare(ours, other.translations, references, language)
        ],
    )
