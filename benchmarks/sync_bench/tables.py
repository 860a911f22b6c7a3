"""Markdown tables: quality by variant with a paired test, and time by link with ratios. Pure."""

import statistics
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from scaling_bench.figures import Figures
from train_bench.tables import markdown_table, spread

from dragoman.evaluation.metrics import Counts, bleu_for
from dragoman.evaluation.significance import mean_difference, mean_interval, mean_score
from dragoman.lab.rates import parse_rate
from sync_bench.quality import Run, Scored
from sync_bench.timing import Place, Timed
from sync_bench.variants import BASE

BLEU = bleu_for("de")
TimedRound = Mapping[tuple[str, Place], Timed]
"""Variant and place -> what was measured there, in one round."""


def quality_table(scored: Mapping[Run, Scored], ranks: int) -> str:
    """Returns loss and BLEU of each variant: means over its seeds."""
    rows = []
    for variant, runs in _by_variant(scored, ranks).items():
        of_all = list(runs.values())
        rows.append(
            [
                variant,
                _listed(runs),
                f"{statistics.mean(run.tokens for run in of_all) / 1e6:.2f}",
                _mean_spread([run.validation_loss for run in of_all], ".3f"),
                _bleu_cell([run.validation for run in of_all]),
                _bleu_cell([run.test for run in of_all]),
            ]
        )
    titles = ["variant", "seeds", "target tokens, million", "validation loss"]
    return markdown_table([*titles, "BLEU, validation", "BLEU, test"], rows)


def difference_table(scored: Mapping[Run, Scored], ranks: int) -> str:
    """Returns how far each variant is from exact sums, in the seeds that both have.

    Empty if there is none. Sentences of both held-out sets are one set here.
    """
    by_variant = _by_variant(scored, ranks)
    base = by_variant.pop(BASE, {})
    rows = []
    for variant, runs in by_variant.items():
        pairs = {seed: (base[seed], run) for seed, run in runs.items() if seed in base}
        if not pairs:
            continue
        before, now = ([pooled(pair[index]) for pair in pairs.values()] for index in range(2))
        found = mean_difference(BLEU, before, now)
        losses = [run.validation_loss - exact.validation_loss for exact, run in pairs.values()]
        by_seed = [
            BLEU.score(after) - BLEU.score(first) for first, after in zip(before, now, strict=True)
        ]
        rows.append(
            [
                variant,
                _listed(pairs),
                _mean_spread(losses, "+.3f"),
                f"{found.gain:+.2f}",
                f"{found.low:+.2f} to {found.high:+.2f}",
                f"{found.p:.3f}",
                ", ".join(f"{gain:+.2f}" for gain in by_seed),
            ]
        )
    titles = [f"minus {BASE}", "seeds", "validation loss", "BLEU", "95 % interval", "p"]
    return markdown_table([*titles, "BLEU of each seed"], rows) if rows else ""


def pooled(run: Scored) -> Counts:
    """Returns the counts of validation and test sentences as one set."""
    return np.concatenate([run.validation, run.test])


def time_table(rounds: Sequence[TimedRound], place: Place) -> str:
    """Returns medians over the rounds, with the lowest and the highest; ratios within a round."""
    faster = faster_place(place, (at for one in rounds for _, at in one))
    rows = []
    for variant in dict.fromkeys(name for one in rounds for name, at in one if at == place):
        timed = [one[variant, place] for one in rounds if (variant, place) in one]
        measured = [one.figures for one in timed]
        chosen = ", ".join(dict.fromkeys(one.chosen for one in timed if one.chosen))
        rows.append(
            [
                f"{variant} ({chosen})" if chosen else variant,
                _figure_cell(measured, "token_s", ".3f", 1e3),
                _figure_cell(measured, "update_s", ".2f"),
                _figure_cell(measured, "exposed_s", ".2f"),
                _figure_cell(measured, "exposed_share", ".0f", 100),
                _figure_cell(measured, "sent_bytes", ".2f", 1e-6),
                _figure_cell(measured, "sent_over_formula", ".3f"),
                _ratio_cell(rounds, variant, place, place),
                _ratio_cell(rounds, variant, place, faster) if faster else "",
                _figure_cell(measured, "updates", ".0f"),
            ]
        )
    return markdown_table(
        [
            *("variant", "ms a target token", "s an update", "exposed communication, s an update"),
            *("exposed, % of the time", "sent by a node, MB an update", "sent / formula"),
            f"time / {BASE}",
            f"time / {BASE} at {faster.link if faster else 'ten times the rate'}",
            "updates counted",
        ],
        rows,
    )


def faster_place(place: Place, places: Iterable[Place]) -> Place | None:
    """Returns the place with as many nodes whose link is ten times as fast, if it is there."""
    for other in places:
        is_faster = parse_rate(other.link) == 10 * parse_rate(place.link)
        if other.ranks == place.ranks and is_faster:
            return other
    return None


def _by_variant(scored: Mapping[Run, Scored], ranks: int) -> dict[str, dict[int, Scored]]:
    """Returns variant -> seed -> run."""
    found: dict[str, dict[int, Scored]] = {}
    for run, result in scored.items():
        if run.ranks == ranks:
            found.setdefault(run.variant, {})[run.seed] = result
    return found


def _ratio_cell(rounds: Sequence[TimedRound], variant: str, place: Place, base_place: Place) -> str:
    ratios = [
        one[variant, place].figures["token_s"] / one[BASE, base_place].figures["token_s"]
        for one in rounds
        if (variant, place) in one and (BASE, base_place) in one
    ]
    return spread(ratios, ".3f") if ratios else ""


def _figure_cell(measured: Sequence[Figures], figure: str, shown: str, scale: float = 1.0) -> str:
    figures = [scale * one[figure] for one in measured if figure in one]
    return spread(figures, shown) if figures else ""


def _bleu_cell(runs: Sequence[Counts]) -> str:
    low, high = mean_interval(BLEU, runs)
    return f"{mean_score(BLEU, runs):.2f} ({low:.2f} to {high:.2f})"


def _mean_spread(figures: Sequence[float], shown: str) -> str:
    """Returns the mean and, of several figures, the lowest and the highest."""
    mean, low, high = (
        format(figure, shown) for figure in (statistics.mean(figures), min(figures), max(figures))
    )
    return mean if len(figures) == 1 else f"{mean} ({low} to {high})"


def _listed(seeds: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(seeds)))
