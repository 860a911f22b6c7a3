"""What a world is: hosts, what is wrong with them, and what a report must say of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from dragoman.lab.rates import Direction

Cause = Literal["network", "straggling", "data", "none"]
Ending = Literal["finish", "SIGTERM", "kill"]


@dataclass(frozen=True)
class Cap:
    """A limit of the links of some hosts."""

    hosts: tuple[str, ...]
    rate: str
    direction: Direction = "both"
    from_step: int = 0
    """0: before the run starts."""
    until_step: int | None = None
    on_s: float = 0.0
    """With `off_s`: so long it holds, and so long it does not, in turn."""
    off_s: float = 0.0


@dataclass(frozen=True)
class SlowDevice:
    """The devices of some hosts take `factor` times as long."""

    hosts: tuple[str, ...]
    factor: float
    from_step: int = 1
    until_step: int | None = None


@dataclass(frozen=True)
class SlowData:
    """Loading one step's data takes `seconds` on some hosts."""

    hosts: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class Leg:
    """A part of the run on the first `nodes` hosts, until about `until_step`."""

    nodes: int
    until_step: int
    ending: Ending = "finish"
    """kill: SIGKILL to one rank; the next leg resumes from the newest checkpoint."""


@dataclass(frozen=True)
class World:
    name: str
    cause: Cause
    verdicts: tuple[str, ...]
    """Of the question about the network: the right ones."""
    culprits: tuple[str, ...] = ()
    """Hosts that the report must name; empty: it must name none."""
    allowed: tuple[str, ...] = ()
    """Hosts that it may name as well: at the other end of the slow link."""
    may_name_nobody: bool = False
    """A link between two hosts has two ends, and nobody can tell which of them is slow."""
    nodes: int = 2
    workers: int = 1
    """Of each host."""
    steps: int = 35
    device_s: float = 0.15
    """A step on two ranks, on a device that each rank has for itself; 0: on the processors."""
    tokens_per_update: int = 320
    caps: tuple[Cap, ...] = ()
    slow_devices: tuple[SlowDevice, ...] = ()
    slow_data: tuple[SlowData, ...] = ()
    quotas: Mapping[str, float] = field(default_factory=dict)
    """Host -> of one processor."""
    busy_loops: Mapping[str, int] = field(default_factory=dict)
    """Host -> other programs on the processor that its ranks have."""
    legs: tuple[Leg, ...] = ()
    """Empty: one, on all nodes."""

    @property
    def parts(self) -> tuple[Leg, ...]:
        return self.legs or (Leg(self.nodes, self.steps),)

    @property
    def is_intermittent(self) -> bool:
        return any(cap.on_s for cap in self.caps)

    @property
    def has_bounds(self) -> bool:
        """Whether what is wrong begins or ends while the run goes on."""
        changing = [*self.caps, *self.slow_devices]
        is_late = any(one.from_step > 1 or one.until_step for one in changing)
        return is_late or self.slows_processors  # which begins when the run has started

    @property
    def slows_processors(self) -> bool:
        return bool(self.quotas or self.busy_loops)

    def as_run(self, done: dict[str, Any]) -> "World":
        """Returns this world with what was really injected, of a run that was kept."""
        return replace(
            self,
            caps=tuple(Cap(**_tuples(one)) for one in done["caps"]),
            slow_devices=tuple(SlowDevice(**_tuples(one)) for one in done["slow_devices"]),
            slow_data=tuple(SlowData(**_tuples(one)) for one in done["slow_data"]),
            **{name: done[name] for name in ("device_s", "steps", "quotas", "busy_loops")},
        )


def _tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return fields | {"hosts": tuple(fields["hosts"])}
