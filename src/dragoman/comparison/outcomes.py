"""What came out of two runs: speed, quality and cost.

Quality is compared sentence by sentence where both runs have translated the same ones: the sets
that `dragoman evaluate` has scored, and the best evaluation of each during training.
"""

import math
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dragoman.comparison.aspects import Aspect, Row, measured
from dragoman.corpus.test_sets import ALL_TEST_SETS, set_names
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.speed.time_spent import cost_of as paid_for
from dragoman.diagnosis.speed.time_spent import time_spent
from dragoman.evaluation.metrics import bleu_for
from dragoman.evaluation.significance import score_difference
from dragoman.rundir import read_sentences
from dragoman.telemetry.read.tables import Table, group_column, known_mean, known_median

ABOUT_AS_MANY = 0.02
SIGNIFICANT_P = 0.05


def speed_aspect(a: RunFacts, b: RunFacts) -> Aspect:
    """Compares the time of a usual step, its parts as the lowest rank recorded them."""
    for run in (a, b):
        if not len(run.steps):
            why = f"Not known, because {run.record.directory.root} has recorded no step."
            return Aspect("Speed", [], [why])
    one, other = _usual(a), _usual(b)
    names = dict.fromkeys([*one.groups.get("parts_s", {}), *other.groups.get("parts_s", {})])
    parts = [measured(f"  {name}", _part(one, name), _part(other, name), "s") for name in names]
    pace = measured("tokens a second", _tokens_per_s(one), _tokens_per_s(other), "tokens")
    rows = [
        measured("mean step", known_mean(one["step_s"]), known_mean(other["step_s"]), "s"),
        *parts,
        measured("median step", known_median(one["step_s"]), known_median(other["step_s"]), "s"),
        measured("tokens a step", known_mean(one["tokens"]), known_mean(other["tokens"]), "tokens"),
        pace,
        measured("sent a step", _sent(one), _sent(other), "bytes"),
    ]
    known = [row for row in rows if row.a is not None or row.b is not None]
    return Aspect("Speed", known, _speed_in_words(pace, parts))


def _usual(run: RunFacts) -> Table:
    """Returns the steps over which a report takes its means; all where it cannot tell."""
    usual = np.isin(run.steps["step"], run.step_parts.step[run.step_parts.usual])
    return run.steps.where(usual if usual.any() else slice(None))


def _speed_in_words(pace: Row, parts: list[Row]) -> list[str]:
    if pace.ratio is None:
        return []
    sentence = f"{_pace_in_words(pace.ratio)} tokens a second."
    changes = [
        (row.b - row.a, row.what.strip())
        for row in parts
        if isinstance(row.a, float) and isinstance(row.b, float)
    ]
    if not changes:
        return [sentence]
    change_s, part = max(changes, key=lambda change: abs(change[0]))
    direction = "longer" if change_s > 0 else "shorter"
    change = f"{abs(change_s):.3g} s {direction}"
    return [f"{sentence} What changed most in a step is {part}: {change}."]


def _pace_in_words(ratio: float) -> str:
    if abs(ratio - 1) < ABOUT_AS_MANY:
        return "Both process about as many"
    if ratio >= 2:
        return f"The second processes {ratio:.1f} times as many"
    more = "more" if ratio > 1 else "fewer"
    return f"The second processes {100 * abs(ratio - 1):.0f} % {more}"


def _part(steps: Table, part: str) -> float:
    """Counts a step without this part as one that took no time for it; NaN: no step has it."""
    values = group_column(steps, "parts_s", part)
    return math.nan if np.isnan(values).all() else float(np.nansum(values)) / len(steps)


def _tokens_per_s(steps: Table) -> float:
    total_s = float(np.nansum(steps["step_s"]))
    return float(np.nansum(steps["tokens"])) / total_s if total_s > 0 else math.nan


def _sent(steps: Table) -> float:
    return known_mean(group_column(steps, "traffic_bytes", "sent"))


class Translated(NamedTuple):
    translations: list[str]
    references: list[str]
    """Line by line."""


def quality_aspect(a: RunFacts, b: RunFacts) -> Aspect:
    rows = [*_best_so_far(a, b)]
    sentences = []
    for name, first, second in _sets(a, b):
        if isinstance(first, str) or isinstance(second, str):
            why = first if isinstance(first, str) else second
            sentences.append(f"{name}: not compared, because {why}.")
        elif first.references != second.references:
            sentences.append(f"{name}: not compared, because the reference translations differ.")
        else:
            row, sentence = _compared(name, first, second, b.config.data.target_language)
            rows.append(row)
            sentences.append(sentence)
    return Aspect("Quality", rows, sentences)


def _best_so_far(a: RunFacts, b: RunFacts) -> Iterator[Row]:
    for what, unit, figure, best in (
        ("lowest validation loss", "nats", "validation_loss", min),
        ("best validation BLEU", "BLEU", "bleu", max),
    ):
        (value_a, step_a), (value_b, step_b) = _best(a, figure, best), _best(b, figure, best)
        if value_a is not None or value_b is not None:
            yield Row(what, value_a, value_b, unit)
            yield Row("  at step", step_a, step_b)


def _best(run: RunFacts, figure: str, best: Any) -> tuple[float | None, int | None]:
    """Returns (value, step) by `min` or `max`; of equal ones the first, as training keeps it."""
    known = [(getattr(e, figure), e.step) for e in run.evaluations]
    finite = [pair for pair in known if pair[0] is not None and math.isfinite(pair[0])]
    found: tuple[float | None, int | None] = best(finite, key=itemgetter(0), default=(None, None))
    return found


def _sets(a: RunFacts, b: RunFacts) -> Iterator[tuple[str, Translated | str, Translated | str]]:
    """Yields (name, translations of both); a text instead is the reason why there are none."""
    test_sets = [*set_names(a.config.data.test), *set_names(b.config.data.test)] or [ALL_TEST_SETS]
    for name in dict.fromkeys([*test_sets, ALL_TEST_SETS, "validation"]):
        first, second = _scored(a, name), _scored(b, name)
        if isinstance(first, Translated) or isinstance(second, Translated) or name in test_sets:
            yield f"{name} set", first, second
    yield "best evaluation during training", _best_evaluated(a), _best_evaluated(b)


def _scored(run: RunFacts, split: str) -> Translated | str:
    directory = run.record.directory
    return _read(
        directory.evaluation_text(split, "translations"),
        directory.evaluation_text(split, "references"),
        f"{directory.root} has no translations of it: dragoman evaluate {directory.root} "
        f"--split {split} makes them",
    )


def _best_evaluated(run: RunFacts) -> Translated | str:
    directory, (_, step) = run.record.directory, _best(run, "bleu", max)
    if step is None:
        return f"{directory.root} has no evaluation with BLEU"
    return _read(
        directory.translations(step),
        directory.references,
        f"{directory.root} has not kept its translations of step {step:,}",
    )


def _read(translated: Path, reference: Path, otherwise: str) -> Translated | str:
    translations, references = read_sentences(translated), read_sentences(reference)
    if not translations or not references:
        return otherwise
    if len(translations) > len(references):
        return f"{otherwise}; the files do not belong together"
    # Evaluations during training may translate only the first of the sentences.
    return Translated(translations, references[: len(translations)])


def _compared(name: str, first: Translated, second: Translated, language: str) -> tuple[Row, str]:
    bleu, references = bleu_for(language), first.references
    before, now = (bleu.counts(each.translations, references) for each in (first, second))
    difference = score_difference(bleu, before, now)
    row = Row(f"{name}: BLEU", bleu.score(before), bleu.score(now), "BLEU")
    interval = f"95 % interval {difference.low:+.1f} to {difference.high:+.1f}"
    count = f"{len(references):,} sentences"
    if difference.p >= SIGNIFICANT_P:
        return row, (
            f"{name}: no difference can be told from {count}: {difference.gain:+.2f} BLEU for the "
            f"second, {interval}, p = {difference.p:.2g} by paired resampling."
        )
    better = "second" if difference.gain > 0 else "first"
    return row, (
        f"{name}: the {better} is better by {abs(difference.gain):.2f} BLEU ({interval} for the "
        f"second, p = {difference.p:.2g} by paired resampling of {count})."
    )


def cost_aspect(a: RunFacts, b: RunFacts) -> Aspect:
    first, second = time_spent(a.attempts), time_spent(b.attempts)
    prices, others = a.config.cost, b.config.cost
    rows = [
        measured("wall time", first.wall_s, second.wall_s, "s"),
        Row("  steps done again", first.repeated_s, second.repeated_s, "s"),
        Row("  down between attempts", first.down_s, second.down_s, "s"),
        measured("steps that count", len(a.steps), len(b.steps), "steps"),
        measured("host hours", paid_for(a.attempts, 1.0), paid_for(b.attempts, 1.0), "h"),
    ]
    if not prices.host_per_hour or not others.host_per_hour:
        why = "Not known in money, because cost.host_per_hour is not set in both runs."
        return Aspect("Time and cost", rows, [why])
    if prices.currency != others.currency:
        why = f"Not compared in money, because one is in {prices.currency}"
        return Aspect("Time and cost", rows, [f"{why} and the other in {others.currency}."])
    paid = paid_for(a.attempts, prices.host_per_hour), paid_for(b.attempts, others.host_per_hour)
    return Aspect("Time and cost", [*rows, measured("cost", *paid, prices.currency)], [])
