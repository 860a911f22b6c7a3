"""Islands: the ranks that sum their gradients exactly in every step and so hold the same weights.

In most modes all ranks are one island. Where ranks take steps of their own (`sync.mode` local and
diloco), each rank or each host is one, and islands meet only to synchronize.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch.distributed as dist

from dragoman.config import SyncSettings
from dragoman.distributed.group import Group


@dataclass(frozen=True)
class Islands:
    """All islands, seen from one rank."""

    of_rank: tuple[int, ...]
    """The island of each rank."""
    own: int
    """The island of this rank."""
    inside: dist.ProcessGroup | None = None
    """Joins the ranks of this island; None: they are all ranks, or this one alone."""
    between: dist.ProcessGroup | None = None
    """Joins the first rank of each island, for these; None: there is one island."""
    spread: dist.ProcessGroup | None = None
    """As `inside`, for what the first rank has from the others, beside gradients on their way."""

    @property
    def count(self) -> int:
        return len({*self.of_rank})

    @property
    def members(self) -> list[int]:
        """The ranks of this island."""
        return members_of(self.of_rank, self.own)

    @property
    def rank_leads(self) -> bool:
        """Whether this rank is the first of its island, and speaks for it."""
        return self.inside is None or dist.get_rank(self.inside) == 0

    @property
    def share(self) -> float:
        """The share of all ranks that is on this island, and so of all work."""
        return len(self.members) / len(self.of_rank)

    def close(self) -> None:
        """Leaves the groups; every rank does so when a run ends."""
        for channel in (self.inside, self.between, self.spread):
            if channel:
                dist.destroy_process_group(channel)


def island_of_each(hosts: Sequence[str], settings: SyncSettings) -> tuple[int, ...]:
    """Returns the island of each rank, counted in the order of the ranks; `hosts` are of each."""
    if not settings.is_local:
        return (0,) * len(hosts)
    if settings.group == "rank":
        return tuple(range(len(hosts)))
    first_seen = list(dict.fromkeys(hosts))
    return tuple(first_seen.index(host) for host in hosts)


def members_of(of_rank: Sequence[int], island: int) -> list[int]:
    return [rank for rank, own in enumerate(of_rank) if own == island]


def form_islands(group: Group, hosts: Sequence[str], settings: SyncSettings) -> Islands:
    """Returns the islands of a run. Collective: every rank must call."""
    of_rank = island_of_each(hosts, settings)
    own, count = of_rank[group.rank], len({*of_rank})
    if count == 1:
        return Islands(of_rank, own)
    inside = spread = None
    for island in range(count):  # all ranks make all groups, in the same order
        members = members_of(of_rank, island)
        if len(members) == 1:
            continue
        made = dist.new_group(members), dist.new_group(members)
        if island == own:
            inside, spread = made
    first_ranks = [members_of(of_rank, island)[0] for island in range(count)]
    between = dist.new_group(first_ranks)
    return Islands(of_rank, own, inside, between if group.rank in first_ranks else None, spread)
