"""How much of the work goes to padding?"""

import numpy as np

from dragoman.diagnosis.findings import Figure, Finding
from dragoman.diagnosis.phrasing import percent
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.telemetry.read.tables import group_column

NOTABLE_SHARE = 0.15
"""Of all positions; batches of pairs of nearly equal length have 2 to 5 %."""


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
    limit = run.config.training.micro_batch_tokens
    return Finding(
        verdict=percent(share),
        confidence="high",
        sentence=(
            f"{percent(share)} of all positions that were computed hold no token: sentences of "
            "very different lengths share micro-batches."
        ),
        evidence=[
            Figure("padding", share, "share"),
            Figure("positions", positions, "tokens"),
            Figure("tokens on both sides", tokens, "tokens"),
            Figure("training.micro_batch_tokens", limit, "tokens"),
        ],
        advice=(
            "More sentence pairs, or a smaller data.max_length that drops the few very long ones, "
            "would make micro-batches more even."
        ),
    )
