"""What holds a step back: the split of a mean step comes in, one of five verdicts goes out. Pure.

Computing is what a run is for. Whatever else takes a large enough share of the step is what holds
it back, and the largest of these is the verdict; when there is none, the run is compute-bound.
"""

import math
from typing import Literal, NamedTuple

from dragoman.diagnosis.run.steps import Split

Verdict = Literal["network-bound", "latency-bound", "straggler", "input-bound", "compute-bound"]

BOUND_SHARE = 0.20
"""Of the step. Communication of a quarter of the computing is what gradient exchange is designed
to stay under; a fifth of the step is the same, and is a fifth of the bill."""
STILL_BOUND_SHARE = 0.16
"""A verdict that holds is given up below this, so that noise at the limit does not flicker."""
CLEAR_SHARE = 0.30
CLEARLY_FREE_SHARE = 0.12
"""With nothing between these two, the limit itself could be set otherwise and change nothing."""
ALWAYS_THE_SAME = 0.75
"""Share of all waiting that is for one host, to call it slow; of two equal hosts each is waited for
half of the time."""
LATENCY_SHARE = 0.5
"""Of the exposed time: explained by ways through the network that carry next to nothing."""
IDLE_LINK_SHARE = 0.5
"""A link that carries less than this while all wait for it is not what limits the rate."""

BUCKET_BYTES = 25 * 2**20
"""DDP sends gradients in buckets of this size."""


class Shares(NamedTuple):
    """Of the step, 0 to 1. NaN: not recorded."""

    compute: float
    network: float
    straggling: float
    data: float
    checkpoint: float
    rest: float
    late_data: float

    @property
    def input(self) -> float:
        """Waiting for data: one's own, and for ranks that wait for theirs."""
        return self.data + min(self.late_data, _known(self.straggling))


class Link(NamedTuple):
    """What is known of the way between the ranks. NaN: nothing."""

    messages: float = math.nan
    """All-reduces of a step."""
    bytes_per_step: float = math.nan
    """Sent by a node."""
    carried: float = math.nan
    """Bytes a second, the most that was read."""
    port_rate: float = math.nan
    """Bytes a second that the port says it can; the way behind it may be slower."""
    reading_s: float = math.nan
    """Between two readings."""

    @property
    def capability(self) -> float:
        """The most that there is reason to expect of it."""
        known = [rate for rate in (self.carried, self.port_rate) if not math.isnan(rate)]
        return max(known, default=math.nan)


class Late(NamedTuple):
    """Whom the others wait for most: one host, or several that always are late together."""

    who: str
    share: float
    """Of all their waiting for each other."""
    step_share: float
    """Of the steps: so often it comes last."""
    are_several: bool = False
    are_ranks: bool = False
    """`who` names ranks and not hosts."""
    early: str = ""
    """Most are late together: who is not."""


UNKNOWN_LINK = Link()
NOBODY = Late("", 0.0, 0.0)


def messages_of(gradient_bytes: float) -> float:
    """Buckets of DDP; its first one is small, so that sending begins early."""
    return 1.0 + math.ceil(gradient_bytes / BUCKET_BYTES)


def shares_of(split: Split) -> Shares:
    step_s = split.step_s or math.nan
    return Shares(
        compute=split.compute_s / step_s,
        network=split.network_s / step_s,
        straggling=split.straggling_s / step_s,
        data=split.data_s / step_s,
        checkpoint=split.checkpoint_s / step_s,
        rest=split.rest_s / step_s,
        late_data=split.late_data_s / step_s,
    )


def hindrances(shares: Shares, late: Late = NOBODY) -> dict[Verdict, float]:
    """What is not computing and can be done something about -> its share, the largest first.

    Ranks that are late because of their data, now one and now another, are the data's fault; one
    that always is late is a straggler, whatever it waits for.
    """
    is_one = late.share >= ALWAYS_THE_SAME
    straggling = _known(shares.straggling)
    late_data = min(shares.late_data, straggling)
    found: dict[Verdict, float] = {
        "network-bound": _known(shares.network),
        "straggler": straggling if is_one else straggling - late_data,
        "input-bound": shares.data if is_one else shares.data + late_data,
    }
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def verdict_of(
    split: Split, link: Link = UNKNOWN_LINK, late: Late = NOBODY, held: str = ""
) -> Verdict:
    """`held`: the verdict until now, which is not given up for a trifle."""
    for verdict, share in hindrances(shares_of(split), late).items():
        named: Verdict = verdict
        if verdict == "network-bound" and latency_explains(split, link):
            named = "latency-bound"
        if share >= (STILL_BOUND_SHARE if held == named else BOUND_SHARE):
            return named
    return "compute-bound"


def latency_s(split: Split, link: Link) -> float:
    """Of the network's exposed time, at most what its messages would take with nothing in them."""
    exposed_s = _known(split.network_s)
    if math.isnan(link.messages):
        return 0.0
    return min(exposed_s, link.messages * split.small_message_s)


def latency_explains(split: Split, link: Link) -> bool:
    """The time goes to the way and not to the bytes: so many empty messages take about as long,
    and the bytes fill nothing like the link that is known."""
    exposed_s = _known(split.network_s)
    if not exposed_s or latency_s(split, link) < LATENCY_SHARE * exposed_s:
        return False
    needed = link.bytes_per_step / exposed_s
    return not needed >= IDLE_LINK_SHARE * link.capability  # also when either is not known


def _known(value: float) -> float:
    return 0.0 if math.isnan(value) else value
