"""Which model is better, and whether that is more than the choice of sentences.

Two runs are compared sentence by sentence where both have translated the same ones: the sets that
`dragoman evaluate` has scored, and the best evaluation of each during training.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dragoman.comparison.rows import ComparedRun, Group, Row, row
from dragoman.evaluation.significance import bleu_difference, bleu_for, sentence_counts
from dragoman.rundir import read_sentences

SIGNIFICANT_P = 0.05
SPLITS = ("test", "validation")


class Translated(NamedTuple):
    """Line by line."""

    translations: list[str]
    references: list[str]


def quality_of(a: ComparedRun, b: ComparedRun) -> Group:
    rows = [*_best_so_far(a, b)]
    sentences = []
    for name, first, second in _sets(a, b):
        if isinstance(first, str) or isinstance(second, str):
            reasons = [why for why in (first, second) if isinstance(why, str)]
            sentences.append(f"{name}: not compared, because {reasons[0]}.")
            continue
        scored, sentence = _compared(name, first, second, b.facts.config.data.target_language)
        rows += scored
        sentences.append(sentence)
    return Group("Quality", rows, sentences)


def _best_so_far(a: ComparedRun, b: ComparedRun) -> Iterator[Row]:
    for what, unit, best in (
        ("lowest validation loss", "nats", _lowest_loss),
        ("best validation BLEU", "BLEU", _best_bleu),
    ):
        (value_a, step_a), (value_b, step_b) = best(a), best(b)
        if value_a is not None or value_b is not None:
            yield row(what, value_a, value_b, unit)
            yield row("  at step", step_a, step_b)


def _lowest_loss(run: ComparedRun) -> tuple[float | None, int | None]:
    known = [(e.validation_loss, e.step) for e in run.facts.evaluations]
    return min((pair for pair in known if math.isfinite(pair[0])), default=(None, None))


def _best_bleu(run: ComparedRun) -> tuple[float | None, int | None]:
    """Of equal ones the first, as training keeps it."""
    known = [(e.bleu, e.step) for e in run.facts.evaluations if e.bleu is not None]
    finite = [pair for pair in known if math.isfinite(pair[0])]
    return max(finite, key=lambda pair: pair[0], default=(None, None))


def _sets(
    a: ComparedRun, b: ComparedRun
) -> Iterator[tuple[str, Translated | str, Translated | str]]:
    """(what, translations of both); a text where there are none: the reason."""
    for split in SPLITS:
        first, second = _scored(a, split), _scored(b, split)
        if isinstance(first, Translated) or isinstance(second, Translated) or split == "test":
            yield f"{split} set", first, second
    yield "best evaluation during training", _best_evaluated(a), _best_evaluated(b)


def _scored(run: ComparedRun, split: str) -> Translated | str:
    directory = run.directory
    return _read(
        read_sentences(directory.evaluation_text(split, "translations")),
        read_sentences(directory.evaluation_text(split, "references")),
        f"{directory.root} has no translations of it: dragoman evaluate {directory.root} "
        f"--split {split} makes them",
    )


def _best_evaluated(run: ComparedRun) -> Translated | str:
    directory, (_, step) = run.directory, _best_bleu(run)
    if step is None:
        return f"{directory.root} has no evaluation with BLEU"
    return _read(
        read_sentences(directory.translations(step)),
        read_sentences(directory.references),
        f"{directory.root} has not kept its translations of step {step:,}",
    )


def _read(
    translations: list[str] | None, references: list[str] | None, otherwise: str
) -> Translated | str:
    if not translations or not references:
        return otherwise
    if len(translations) > len(references):
        return f"{otherwise}; the files do not belong together"
    # Evaluations during training may translate only the first of the sentences.
    return Translated(translations, references[: len(translations)])


def _compared(
    name: str, first: Translated, second: Translated, language: str
) -> tuple[Sequence[Row], str]:
    if first.references != second.references:
        return (), f"{name}: not compared, because the reference translations differ."
    bleu = bleu_for(language)
    one = sentence_counts(bleu, first.translations, first.references)
    other = sentence_counts(bleu, second.translations, second.references)
    score_a = bleu.corpus_score(first.translations, [first.references]).score
    score_b = bleu.corpus_score(second.translations, [second.references]).score
    difference = bleu_difference(one, other)
    rows = (row(f"{name}: BLEU", score_a, score_b, "BLEU"),)
    interval = f"95 % interval {difference.low:+.1f} to {difference.high:+.1f}"
    count = f"{len(first.references):,} sentences"
    if difference.p >= SIGNIFICANT_P:
        return rows, (
            f"{name}: no difference can be told from {count}: {difference.gain:+.2f} BLEU for the "
            f"second, {interval}, p = {difference.p:.2g} by paired resampling."
        )
    better = "second" if difference.gain > 0 else "first"
    return rows, (
        f"{name}: the {better} is better by {abs(difference.gain):.2f} BLEU ({interval} for the "
        f"second, p = {difference.p:.2g} by paired resampling of {count})."
    )
