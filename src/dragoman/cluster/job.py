"""What a launcher tells the agent of one host: a JSON line. Without torch."""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Job:
    arguments: list[str]
    """Of `dragoman`, for each worker."""
    workers: int
    """On this host."""
    secret: str
    """Of this start: heartbeats are signed with it, so that a stranger cannot forge them."""
    start: str = ""
    """Name of this start, to tell the end of this job from that of another."""
    first_rank: int = 0
    """Of this host's workers; the others follow."""
    ranks: int = 0
    """On all hosts; 0: those of this host are all."""
    store_port: int = 0
    """On this host's loopback, where the store is reached; 0: the agent opens one of its own."""
    environment: dict[str, str] = field(default_factory=dict)
    folder: str = ""
    """To work in; empty: where the agent was started."""
    files: dict[str, str] = field(default_factory=dict)
    """Text files to write first, by path relative to the folder."""
    run: str = ""
    """Run directory whose records are brought home; empty: none."""
    run_id: str = ""
    """Of the run; a directory of another one, whatever it is called, is left alone."""
    known: dict[str, int] = field(default_factory=dict)
    """Bytes that home has of each record already."""
    home_token: str = ""
    """Name of a file beside the records at home: where it is found, nothing has to be brought."""
    only_warm_up: bool = False
    """Start no worker; the job has ended when workers could start at once."""
    relays: bool = False
    """Send the workers' output home as messages, instead of printing it, and then wait for another
    job instead of ending."""

    def to_line(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_line(cls, line: str) -> "Job":
        return cls(**json.loads(line))


def first_ranks(workers: Sequence[int]) -> list[int]:
    """The first rank of each host, given how many workers each has."""
    return [sum(workers[:number]) for number in range(len(workers))]
