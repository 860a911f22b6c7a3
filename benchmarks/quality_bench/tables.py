"""Markdown of what was measured: minutes to each level, the curves, times, and the test set."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from train_bench.tables import markdown_table

from dragoman.evaluation.scoring import MetricScore
from quality_bench.candidates import HUGGING_FACE, NAMES, OURS
from quality_bench.curve import LEVELS, Point, Spent, minutes_to


class Result(NamedTuple):
    """What is known of a candidate, be it at its end or when the benchmark was ended."""

    points: list[Point]
    spent: Spent
    ended: str
    """Why it has ended, as the rest of a sentence."""
    plain: MetricScore | None = None
    published: MetricScore | None = None


def level_table(results: Mapping[str, Result]) -> str:
    """Returns training minutes to each level, and how many times as fast ours reached it."""
    rows = []
    for level in LEVELS:
        minutes = {name: minutes_to(level, result.points) for name, result in results.items()}
        cells = [_minutes(minutes[name], result.spent.training) for name, result in results.items()]
        rows.append([f"{level:g}", *cells, _ratio(minutes.get(HUGGING_FACE), minutes.get(OURS))])
    titles = [f"{NAMES[name]}, minutes" for name in results]
    return markdown_table(["validation BLEU", *titles, "times as fast"], rows)


def curve_table(points: Sequence[Point]) -> str:
    rows = [
        [f"{one.step:,}", f"{one.minutes:.2f}", f"{one.cpu_minutes:.2f}", f"{one.bleu:.2f}"]
        for one in points
    ]
    return markdown_table(["step", "training minutes", "CPU minutes", "validation BLEU"], rows)


def time_table(results: Mapping[str, Result]) -> str:
    """Returns the minutes of each candidate's turns, with those of all processors beside them."""
    rows = []
    for name, result in results.items():
        spent = result.spent
        speed = spent.tokens / (60 * spent.training) if spent.training else 0.0
        rows.append(
            [
                NAMES[name],
                f"{spent.training:.1f} ({spent.training_cpu:.1f})",
                f"{spent.evaluation:.1f} ({spent.evaluation_cpu:.1f})",
                f"{spent.other:.1f} ({spent.other_cpu:.1f})",
                f"{spent.steps:,}",
                f"{speed:,.0f}",
                f"{spent.tokens / max(spent.steps, 1):,.0f}",
            ]
        )
    titles = ["training", "evaluation", "start, saving, rest"]
    return markdown_table(
        [
            "candidate",
            *(f"{title}, minutes (of CPU)" for title in titles),
            *("steps", "target tokens/s", "target tokens a step"),
        ],
        rows,
    )


def score_table(results: Mapping[str, Result]) -> str:
    """Returns the scores on the test set, with their 95 % intervals."""
    rows = [
        [NAMES[name], *map(_score, (result.plain, result.published))]
        for name, result in results.items()
    ]
    return markdown_table(["candidate", "BLEU", "BLEU in the published form"], rows)


def _minutes(minutes: float | None, trained: float) -> str:
    return f"not reached in {trained:.1f}" if minutes is None else f"{minutes:.1f}"


def _ratio(theirs: float | None, ours: float | None) -> str:
    return "" if theirs is None or not ours else f"{theirs / ours:.2f}"


def _score(score: MetricScore | None) -> str:
    return f"{score.score:.1f} ({score.low:.1f} to {score.high:.1f})" if score else "not scored"
