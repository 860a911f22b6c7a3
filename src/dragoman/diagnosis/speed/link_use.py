"""What passes over the links of a run, against what must pass and what the ports announce. Pure."""

import math
from collections.abc import Sequence
from typing import Literal

from dragoman.diagnosis.run.host_traffic import HostTraffic
from dragoman.diagnosis.speed.bottleneck import Link
from dragoman.distributed.ring_bytes import messages_of
from dragoman.telemetry.read.tables import known

Comparison = Literal["as predicted", "more than predicted", "less than predicted", "no traffic"]

MORE = 1.10
"""Counted over predicted: confirmations of what is received, repeated packets and the step's small
messages take some percent."""
LESS = 0.93
ALLOWED_BYTES = 65_536.0
"""Small messages of a step, which the prediction leaves out."""
ALLOWED_RATE = 50_000.0
"""Bytes a second of what else a host sends: signs of life, records on their way home."""
ELSEWHERE = 0.3
"""Counted over predicted: with so little, most gradients pass where nobody counts."""
MUCH_RETRANSMITTED = 0.01
"""Of TCP's segments; links in order repeat less than a thousandth."""
CAPPED_SHARE = 0.5
"""Of what the port announces: a link that all wait for and that never carries more is capped."""


def link_between(hosts: Sequence[HostTraffic], gradient_bytes: int) -> Link:
    """Returns the link of the host that sends most over the port that can least: a ring is as fast
    as that one."""
    if passes_elsewhere(hosts):
        return Link(messages=messages_of(gradient_bytes))
    return Link(
        messages=messages_of(gradient_bytes),
        bytes_per_step=max((host.bytes_per_step["sent"] for host in hosts), default=math.nan),
        carried=min(known(host.carried for host in hosts), default=math.nan),
        port_rate=min(known(host.port_rate for host in hosts), default=math.nan),
        reading_s=max((host.reading_s for host in hosts), default=math.nan),
    )


def counted_against_predicted(hosts: Sequence[HostTraffic], step_s: float) -> Comparison | None:
    """Returns how the bytes of all hosts together compare with what the algorithm must send; None
    where nothing was counted."""
    if not hosts:
        return None
    counted = math.fsum(host.bytes_per_step["sent"] for host in hosts)
    predicted = math.fsum(host.bytes_per_step["predicted"] for host in hosts)
    if not predicted:
        return "no traffic" if counted < ALLOWED_BYTES * len(hosts) else "more than predicted"
    allowed = (ALLOWED_BYTES + ALLOWED_RATE * step_s) * len(hosts)
    if counted > MORE * predicted + allowed:
        return "more than predicted"
    return "less than predicted" if counted < LESS * predicted else "as predicted"


def passes_elsewhere(hosts: Sequence[HostTraffic]) -> bool:
    """Returns whether gradients take another way between hosts than the interfaces that the kernel
    counts, such as InfiniBand: then the counters say nothing about the link."""
    counted = math.fsum(host.bytes_per_step["sent"] for host in hosts)
    predicted = math.fsum(host.bytes_per_step["predicted"] for host in hosts)
    return len(hosts) > 1 and counted < ELSEWHERE * predicted


def most_retransmitted(hosts: Sequence[HostTraffic]) -> float:
    """Returns the share of the host that retransmits most."""
    return max(known(host.retransmitted for host in hosts), default=0.0)


def by_port(hosts: Sequence[HostTraffic]) -> list[HostTraffic]:
    """Returns the hosts whose ports announce a rate, the slowest first."""
    announced = [host for host in hosts if not math.isnan(host.port_rate)]
    return sorted(announced, key=lambda host: host.port_rate)
