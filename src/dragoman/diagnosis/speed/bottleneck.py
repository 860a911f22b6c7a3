"""What holds a step back: the split of a mean step comes in, one of five verdicts goes out. Pure.

Computing is what a run is for. Whatever else takes a large enough share of the step is what holds
it back, and the largest of these is the verdict; when there is none, the run is compute-bound.
"""

import math
from typing import Literal, NamedTuple

from dragoman.diagnosis.run.steps import StepSplit
from dragoman.telemetry.read.tables import known

Verdict = Literal["network-bound", "latency-bound", "straggler", "input-bound", "compute-bound"]

FEW_STEPS = 20
"""Whatever fewer steps say may be chance, or still the start."""
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


class Shares(NamedTuple):
    """The parts of a step as shares of it, 0 to 1. NaN: not recorded."""

    compute: float
    network: float
    straggling: float
    data: float
    checkpoint: float
    rest: float
    late_data: float

    @property
    def input(self) -> float:
        """Waiting for data: the rank's own, and for ranks that wait for theirs."""
        return self.data + self.straggling_for_data

    @property
    def straggling_for_data(self) -> float:
        """Waiting for ranks that are late because they wait for their data."""
        return min(self.late_data, or_zero(self.straggling))


class Link(NamedTuple):
    """What is known of the way between the ranks. NaN: nothing."""

    messages: float = math.nan
    """All-reduces of a step."""
    bytes_per_step: float = math.nan
    """Sent by a host."""
    carried: float = math.nan
    """The highest rate that was read, in bytes a second."""
    port_rate: float = math.nan
    """Bytes a second that the port announces; the way behind it may be slower."""
    reading_s: float = math.nan
    """Between two readings."""

    @property
    def capability(self) -> float:
        """The highest rate that there is reason to expect of it."""
        return max(known([self.carried, self.port_rate]), default=math.nan)


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
    """The hosts that are not late, where most are late together."""

    @property
    def is_always_the_same(self) -> bool:
        return self.share >= ALWAYS_THE_SAME

    @property
    def names(self) -> list[str]:
        """Each of those that `who` lists."""
        return self.who.replace(" and ", ", ").split(", ") if self.who else []


UNKNOWN_LINK = Link()
NOBODY = Late("", 0.0, 0.0)


def shares_of(split: StepSplit) -> Shares:
    step_s = split.step_s or math.nan
    return Shares(*(getattr(split, f"{part}_s") / step_s for part in Shares._fields))


def candidates(shares: Shares, late: Late = NOBODY) -> dict[Verdict, float]:
    """Returns what may hold the step back with its share of it, the largest first.

    Ranks that are late because of their data, now one and now another, are the data's fault; one
    that always is late is a straggler, whatever it waits for.
    """
    for_data = 0.0 if late.is_always_the_same else shares.straggling_for_data
    found: dict[Verdict, float] = {
        "network-bound": or_zero(shares.network),
        "straggler": or_zero(shares.straggling) - for_data,
        "input-bound": shares.data + for_data,
    }
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def depends_on_who_is_late(split: StepSplit) -> bool:
    """Returns whether the verdict may be another one when another rank is late."""
    shares = shares_of(split)
    return or_zero(shares.straggling) + shares.data >= STILL_BOUND_SHARE


def verdict_of(
    split: StepSplit, link: Link = UNKNOWN_LINK, late: Late = NOBODY, held: str = ""
) -> Verdict:
    """Returns what holds the step back; `held` is the verdict until now, which is not given up for
    a trifle."""
    for verdict, share in candidates(shares_of(split), late).items():
        named: Verdict = verdict
        if verdict == "network-bound" and latency_explains(split, link):
            named = "latency-bound"
        if share >= (STILL_BOUND_SHARE if held == named else BOUND_SHARE):
            return named
    return "compute-bound"


def latency_s(split: StepSplit, link: Link) -> float:
    """Returns how much of the exposed network time its messages would take with nothing in them,
    at most."""
    if math.isnan(link.messages):
        return 0.0
    return min(or_zero(split.network_s), link.messages * split.small_message_s)


def latency_explains(split: StepSplit, link: Link) -> bool:
    """Returns whether the time goes to the way and not to the bytes: so many empty messages take
    about as long, and the bytes fill nothing like the link that is known."""
    exposed_s = or_zero(split.network_s)
    if not exposed_s or latency_s(split, link) < LATENCY_SHARE * exposed_s:
        return False
    needed = link.bytes_per_step / exposed_s
    return not needed >= IDLE_LINK_SHARE * link.capability  # also when either is not known


def data_makes_late(split: StepSplit) -> bool:
    """Returns whether the last rank is late mostly because it waits for its data."""
    return split.late_data_s > split.straggling_s / 2


def or_zero(value: float) -> float:
    """Returns 0 for what was not recorded."""
    return 0.0 if math.isnan(value) else value
