"""How fast a run would be on more hosts or on fewer: measured where it has tried, else projected.
Pure."""

import math
from collections import Counter
from typing import NamedTuple

from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.speed.bottleneck import Link
from dragoman.diagnosis.speed.layouts import ENOUGH_STEPS, LayoutPace, layouts_of
from dragoman.diagnosis.speed.link_use import link_between
from dragoman.diagnosis.speed.what_if import (
    ProjectedTeam,
    Team,
    micro_batches_of,
    projected,
    projected_team,
)
from dragoman.diagnosis.speed.work_shares import work_shares

SAME_TOKENS = 0.02
"""Relative: steps of as many tokens can be compared."""


class TeamPace(NamedTuple):
    team: ProjectedTeam
    is_measured: bool


class Teams(NamedTuple):
    """The hosts that a run has had last, and what others would do."""

    now: LayoutPace
    members: Team
    link: Link
    measured: dict[int, LayoutPace]
    """By the number of hosts: other layouts of the run, with enough steps."""

    def with_hosts(self, hosts: int) -> TeamPace:
        """Returns the pace on as many hosts; for more than have work, with smaller micro-batches
        as far as needed."""
        if hosts in self.measured:
            other = self.measured[hosts]
            found = projected(self.now.split.step_s, self.now.hosts, other.split.step_s, hosts)
            return TeamPace(found, is_measured=True)
        members = self.members._replace(micro_batches=self.needed_micro_batches(hosts))
        return TeamPace(projected_team(self.now.split, self.link, members, hosts), False)

    def needed_micro_batches(self, hosts: int) -> int | None:
        """Returns how many micro-batches a step needs for so many hosts: those it has, or more."""
        found = self.members.micro_batches
        while found is not None and found < self.members.of_hosts(hosts).ranks:
            found *= 2
        return found

    def next_with_less_work(self) -> TeamPace | None:
        """Returns the next larger number of hosts on which the busiest rank has fewer micro-batches
        than now; None: not known, or every rank has but one."""
        members = self.members
        if members.micro_batches is None or members.ranks >= members.micro_batches:
            return None
        hosts = members.hosts + 1
        while members.of_hosts(hosts).largest_part >= members.largest_part:
            hosts += 1
        return self.with_hosts(hosts)

    def fastest_of_fewer(self) -> TeamPace | None:
        """None: there is one host alone."""
        fewer = [self.with_hosts(hosts) for hosts in range(1, self.now.hosts)]
        return min(fewer, key=lambda pace: pace.team.step_s, default=None)


def teams_of(run: RunFacts) -> Teams | None:
    """Returns None where no step was recorded, what its network took was not, or hosts differ."""
    layouts = layouts_of(run)
    now = max(layouts, key=lambda layout: max(layout.attempts), default=None)
    if now is None or (now.ranks > 1 and math.isnan(now.split.network_s)):
        return None
    hosts = next(a.hosts.values() for a in run.attempts if a.number == max(now.attempts))
    if len(set(Counter(hosts).values())) > 1:  # a mean of unequal hosts is none of them
        return None
    micro_batches = micro_batches_of(
        work_shares(run).padded_tokens, run.config.training.pairs_fill_tokens, now.ranks
    )
    same = now.tokens_per_step * SAME_TOKENS
    return Teams(
        now,
        Team(now.hosts, now.ranks, micro_batches),
        link_between(now.traffic, run.record.model_size.gradient_bytes),
        measured={
            each.hosts: each
            for each in layouts
            if each.hosts != now.hosts
            and each.steps >= ENOUGH_STEPS
            and each.ranks * now.hosts == now.ranks * each.hosts
            and abs(each.tokens_per_step - now.tokens_per_step) <= same
        },
    )
