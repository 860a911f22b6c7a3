"""What a step would take if the network were another, asked less often, or had more hosts. Pure.

Only what is exposed can be won: communication that passes beside backward costs nothing already.
Of the exposed time, what single messages take on their way does not shrink with the bytes.
"""

import math
from typing import NamedTuple

from dragoman.diagnosis.run.steps import StepSplit
from dragoman.diagnosis.speed.bottleneck import Link, latency_s, or_zero

FASTER_LINK = 10.0
"""Times the rate: the next class of link that one can rent."""

PORT_HOLDS = 0.9
"""The bytes do not pass slower than so much of what the port announces: it may be believed."""

NEAR_A_POWER = 0.08
"""Relative: so near a power of two, the number of micro-batches cannot be told from the tokens."""


class ProjectedSteps(NamedTuple):
    """Seconds of a step, for the same number of tokens."""

    now_s: float
    faster_link_s: float
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
    return ProjectedSteps(
        now_s=split.step_s,
        faster_link_s=with_faster_link(split, link, FASTER_LINK),
        double_updates_s=split.step_s - exposed_s * (1 - 1 / 2),
        fourfold_updates_s=split.step_s - exposed_s * (1 - 1 / 4),
        hidden_s=hidden_network_s(split, link),
    )


def with_faster_link(split: StepSplit, link: Link, times: float) -> float:
    """Returns the seconds of a step on a link of so many times the rate."""
    exposed_s = or_zero(split.network_s)
    on_the_way_s = latency_s(split, link)
    hidden_s = hidden_network_s(split, link)
    shorter_s = on_the_way_s + (exposed_s - on_the_way_s) / times
    if not math.isnan(hidden_s):
        busy_s = on_the_way_s + (exposed_s + hidden_s - on_the_way_s) / times
        # As much as now fits beside backward, but for the last message: nothing comes after.
        shorter_s = max(busy_s - hidden_s, busy_s / max(1.0, link.messages))
    return split.step_s - exposed_s + min(exposed_s, shorter_s)


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


class Team(NamedTuple):
    """Who shares the work of a step."""

    hosts: int
    ranks: int
    micro_batches: int | None = None
    """Of a step, shared out among the ranks; None: not known, and taken to divide evenly."""

    def of_hosts(self, hosts: int) -> "Team":
        """Returns as many hosts with as many ranks each."""
        return self._replace(hosts=hosts, ranks=max(1, round(self.ranks / self.hosts * hosts)))

    @property
    def has_work_for_all(self) -> bool:
        return self.micro_batches is None or self.ranks <= self.micro_batches

    @property
    def largest_part(self) -> float:
        """Of a step's computing: that of the rank with most micro-batches, which all wait for."""
        if self.micro_batches is None:
            return 1 / self.ranks
        return math.ceil(self.micro_batches / self.ranks) / self.micro_batches

    @property
    def wire_factor(self) -> float:
        """Times the gradients' bytes: what a ring sends over each of its hops."""
        return 2 * (self.ranks - 1) / self.ranks


class ProjectedTeam(NamedTuple):
    """A step with more hosts or fewer, of the same tokens."""

    hosts: int
    step_s: float
    speed_up: float
    """Of now, over then."""
    cost_factor: float
    """Of then, over now: hosts times seconds, for the same tokens."""


def projected_team(split: StepSplit, link: Link, now: Team, hosts: int) -> ProjectedTeam:
    """Returns what a step would take on as many hosts like these, with links like these.

    Computing is shared out anew, whole micro-batches at a time; the ring's bytes and messages grow;
    what ranks wait for slow ones, for data and for the rest stays.
    """
    then = now.of_hosts(hosts)
    work_s = split.busy_s * now.ranks
    computing_s = split.compute_s + or_zero(split.straggling_s)
    # Whatever is more than the largest part needs is the fault of slow ranks.
    lateness_s = max(0.0, computing_s - work_s * now.largest_part)
    then_computing_s = work_s * then.largest_part + lateness_s
    exposed_s = or_zero(split.network_s)
    step_s = split.step_s - computing_s - exposed_s + then_computing_s
    if then.hosts > 1 and now.hosts > 1:
        step_s += _exposed_then_s(split, link, now, then)
    return projected(split.step_s, now.hosts, step_s, hosts)


def _exposed_then_s(split: StepSplit, link: Link, now: Team, then: Team) -> float:
    exposed_s = or_zero(split.network_s)
    on_the_way_s = latency_s(split, link)
    # A micro-batch stays as it is, and so does what passes beside the last one's backward.
    hidden_s = or_zero(hidden_network_s(split, link))
    carried_s = exposed_s + hidden_s - on_the_way_s
    busy_s = carried_s * then.wire_factor / now.wire_factor
    busy_s += on_the_way_s * (then.ranks - 1) / (now.ranks - 1)
    return max(0.0, busy_s - hidden_s)


def projected(now_s: float, now_hosts: int, then_s: float, then_hosts: int) -> ProjectedTeam:
    return ProjectedTeam(
        then_hosts,
        then_s,
        speed_up=now_s / then_s if then_s else math.nan,
        cost_factor=then_hosts * then_s / (now_hosts * now_s) if now_s else math.nan,
    )


def micro_batches_of(padded_tokens: float, micro_batch_tokens: int, ranks: int) -> int | None:
    """Returns how many micro-batches a step has: a power of two that holds its padded tokens, of
    the longer side, and one for each rank at least. None: they come too near such a bound."""
    if not padded_tokens > 0:
        return None
    needed = max(padded_tokens / micro_batch_tokens, float(ranks))
    found = 2 ** max(0, math.ceil(math.log2(needed)))
    is_near = padded_tokens > micro_batch_tokens and (
        abs(math.log2(padded_tokens / micro_batch_tokens) % 1.0 - 0.5)
        > 0.5 - math.log2(1 + NEAR_A_POWER)
    )
    return None if is_near and padded_tokens / micro_batch_tokens > ranks / 2 else found
