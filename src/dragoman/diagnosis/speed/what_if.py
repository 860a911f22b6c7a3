"""What a step would take if the network were another, or asked less often. Pure.

Only what is exposed can be won: communication that passes beside backward costs nothing already.
Of the exposed time, what single messages take on their way does not shrink with the bytes.
"""

import math
from typing import NamedTuple

from dragoman.diagnosis.run.steps import StepSplit
from dragoman.diagnosis.speed.bottleneck import Link, latency_s, or_zero

FASTER_LINK = 10.0
"""Times the rate: the next class of link that one can rent."""
HALF_BYTES = 0.5
"""bf16 instead of fp32 on the wire."""

PORT_HOLDS = 0.9
"""The bytes do not pass slower than so much of what the port announces: it may be believed."""


class ProjectedSteps(NamedTuple):
    """Seconds of a step, for the same number of tokens."""

    now_s: float
    faster_link_s: float
    half_bytes_s: float
    double_updates_s: float
    """Updates of twice as many tokens, so that gradients travel half as often."""
    fourfold_updates_s: float
    hidden_s: float
    """The network's time that passes beside backward; NaN: not known."""

    def saving(self, then_s: float) -> float:
        """Returns the share of the step that is saved, 0 to 1."""
        return 1 - then_s / self.now_s if self.now_s else 0.0


def projected_steps(split: StepSplit, link: Link) -> ProjectedSteps:
    exposed_s = or_zero(split.network_s)
    on_the_way_s = latency_s(split, link)
    hidden_s = hidden_network_s(split, link)

    def with_bytes(factor: float) -> float:
        """Returns a step with so many times the bytes, or on a link that is faster by that."""
        shorter_s = on_the_way_s + (exposed_s - on_the_way_s) * factor
        if not math.isnan(hidden_s):
            busy_s = on_the_way_s + (exposed_s + hidden_s - on_the_way_s) * factor
            # As much as now fits beside backward, but for the last message: nothing comes after.
            shorter_s = max(busy_s - hidden_s, busy_s / max(1.0, link.messages))
        return split.step_s - exposed_s + min(exposed_s, shorter_s)

    return ProjectedSteps(
        now_s=split.step_s,
        faster_link_s=with_bytes(1 / FASTER_LINK),
        half_bytes_s=with_bytes(HALF_BYTES),
        double_updates_s=split.step_s - exposed_s * (1 - 1 / 2),
        fourfold_updates_s=split.step_s - exposed_s * (1 - 1 / 4),
        hidden_s=hidden_s,
    )


def hidden_network_s(split: StepSplit, link: Link) -> float:
    """Returns the network's time beside backward: what its bytes take at the rate of the link, less
    what was waited for. NaN: the rate is not known."""
    exposed_s = or_zero(split.network_s)
    if link.reading_s <= exposed_s / 2:  # some readings lie within the waiting, when it was busy
        rate = link.carried
    elif link.bytes_per_step >= PORT_HOLDS * link.port_rate * exposed_s:
        rate = link.port_rate
    else:
        return math.nan
    busy_s = link.bytes_per_step / rate if rate > 0 else math.nan
    return min(max(0.0, busy_s - exposed_s), split.backward_s) if busy_s >= 0 else math.nan
