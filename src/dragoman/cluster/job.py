"""What a launcher sends to the agent of one host: a JSON line, and why to stop. Without torch."""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

STOP = "stop: "
"""What a line begins with that asks workers to stop; the reason follows, for people."""


@dataclass(frozen=True)
class Job:
    arguments: list[str]
    """Command line of `dragoman`, for each worker."""
    workers: int
    """Number of workers on this host."""
    secret: str
    """Secret of this start; heartbeats are signed with it, so that strangers cannot forge them."""
    start: str = ""
    """Name of this start, which distinguishes the end of this job from that of another."""
    first_rank: int = 0
    """Rank of this host's first worker; the others follow."""
    ranks: int = 0
    """Workers on all hosts; 0 if there is only this host."""
    store_port: int = 0
    """Loopback port where the store is reached; 0 if the agent opens a store of its own."""
    environment: dict[str, str] = field(default_factory=dict)
    folder: str = ""
    """Working folder; empty for the folder that the agent was started in."""
    files: dict[str, str] = field(default_factory=dict)
    """Text files to write first, by path relative to the folder."""
    run: str = ""
    """Run directory whose records are sent home; empty for none."""
    run_id: str = ""
    """Id of the run; the directory of another run is left alone, whatever its name."""
    known: dict[str, int] = field(default_factory=dict)
    """Bytes of each record that home already has."""
    home_token: str = ""
    """Name of a file next to the records at home; a host that sees it need not send them."""
    only_warm_up: bool = False
    """Start no workers; the job ends as soon as workers could start without delay."""
    relays: bool = False
    """Send the workers' output home as messages, instead of printing it, and then wait for another
    job instead of ending."""

    def to_line(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_line(cls, line: str) -> "Job":
        return cls(**json.loads(line))


def stop_line(reason: str) -> str:
    """Returns the line that has an agent ask its workers to stop."""
    return f"{STOP}{reason or 'asked to stop'}"


def first_ranks(workers: Sequence[int]) -> list[int]:
    """Returns the first rank of each host, given how many workers each has."""
    return [sum(workers[:number]) for number in range(len(workers))]
