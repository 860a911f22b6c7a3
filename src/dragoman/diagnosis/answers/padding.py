"""How much of the work goes to padding?"""

import numpy as np

from dragoman.diagnosis.commands import setting_line
from dragoman.diagnosis.findings import Advice, Figure, Finding
from dragoman.diagnosis.phrasing import percent
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.telemetry.read.tables import group_column

NOTABLE_SHARE = 0.15
"""Of all positions; batches of pairs of nearly equal length have 2 to 5 %."""

KEPT_SHARE = 0.99
"""Of the pairs: the others are the very long ones."""
BUCKET = 8
"""Pieces: the passport counts sentences of fewer than 8, of fewer than 16, and so on."""
LONG_TAIL = 0.75
"""Of data.max_length: where nearly all sentences are shorter, the others are a tail."""


def answer(run: RunFacts) -> Finding | None:
    """Returns None where it is little, or was not counted."""
    positions = tokens = 0.0
    for steps in run.steps_by_rank.values():
        own = group_column(steps, "counts", "positions")
        used = group_column(steps, "counts", "source_tokens")
        used = used + group_column(steps, "counts", "target_tokens")
        counted = ~np.isnan(own) & ~np.isnan(used)
        positions += float(own[counted].sum())
        tokens += float(used[counted].sum())
    share = 1 - tokens / positions if positions else 0.0
    if share < NOTABLE_SHARE:
        return None
    limit = run.config.training.micro_batch_limit
    return Finding(
        verdict=percent(share),
        confidence="high",
        sentence=(
            f"{percent(share)} of all positions that were computed hold no token: {_why(run)}."
        ),
        evidence=[
            Figure("padding", share, "share"),
            Figure("positions", positions, "tokens"),
            Figure("tokens on both sides", tokens, "tokens"),
            Figure("training.micro_batch_tokens", limit, "tokens"),
        ],
        advice=_advice(run),
        plain=(
            f"{percent(share)} of the computing is wasted on filling up short sentences to the "
            "length of longer ones."
        ),
    )


def _why(run: RunFacts) -> str:
    if drawn := run.config.training.subword_dropout:
        return f"sentences get different lengths from training.subword_dropout = {drawn}"
    return "sentences of very different lengths share micro-batches"


def _advice(run: RunFacts) -> list[Advice]:
    """Returns a limit that drops the few very long sentences; none where the lengths do not show
    any."""
    now, shorter = run.config.data.max_length, length_of_most(run)
    if shorter is None or shorter > LONG_TAIL * now:
        return []
    return [
        Advice(
            f"Leave out the {percent(1 - KEPT_SHARE)} of the pairs that are longest in the next "
            f"run: sentences of up to {shorter} pieces instead of {now} make more even "
            "micro-batches.",
            setting_line("data.max_length", shorter),
        )
    ]


def length_of_most(run: RunFacts) -> int | None:
    """Returns the length that nearly all sentences of the training set keep to, on both sides;
    None: not known."""
    passport = run.record.passport
    train = passport.splits.get("train") if passport else None
    if train is None:
        return None
    lengths = [np.cumsum(side.lengths) for side in (train.source, train.target)]
    if not all(len(of_side) and of_side[-1] for of_side in lengths):
        return None
    kept = [int(np.searchsorted(of_side, KEPT_SHARE * of_side[-1])) for of_side in lengths]
    return BUCKET * (max(kept) + 1)
