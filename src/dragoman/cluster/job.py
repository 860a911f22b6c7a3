"""What a launcher tells the agent of one host: a JSON line. Without torch."""

import dataclasses
import json
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Job:
    command: list[str]
    """Of each worker. An empty first word stands for the agent's own Python."""
    workers: int
    hosts: int = 1
    number: int = 0
    """Of this host; 0 is where the others meet."""
    identity: str = "alone"
    """Of this start: agents of another one do not meet these."""
    address: str = "127.0.0.1"
    """Of this host, on the network between them."""
    meeting: tuple[str, int] = ("127.0.0.1", 0)
    """Address and port of host 0; port 0 there: any that is free."""
    environment: dict[str, str] = field(default_factory=dict)
    folder: str = ""
    """To work in; empty: where the agent was started."""
    files: dict[str, str] = field(default_factory=dict)
    """Text files to write first, by path relative to the folder."""
    run: str = ""
    """Run directory whose records are brought home; empty: none."""
    known: dict[str, int] = field(default_factory=dict)
    """Bytes that home has of each record already."""
    home_token: str = ""
    """Name of a file beside the records at home: where it is found, nothing has to be brought."""
    relays: bool = False
    """Send the workers' output home as messages, instead of printing it."""

    def to_line(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_line(cls, line: str) -> "Job":
        content = json.loads(line)
        content["meeting"] = tuple(content["meeting"])
        return cls(**content)
