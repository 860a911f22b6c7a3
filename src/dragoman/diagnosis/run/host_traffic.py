"""What each host sends and receives for the steps, and what its link is known to carry."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dragoman.diagnosis.run.attempts import Attempt
from dragoman.diagnosis.run.hosts import LOOPBACK, HostSensors, host_of, is_on_one_host
from dragoman.diagnosis.run.steps import steps_of_attempt
from dragoman.telemetry.read.tables import (
    Array,
    Table,
    group_column,
    known,
    known_mean,
    known_median,
)

WAYS = ("sent", "received")
BUSY_SHARE = 0.5
"""Of the highest rate, for a reading to count as busy."""


class HostTraffic(NamedTuple):
    """What one host sends and receives in the steps that count. NaN: not recorded."""

    host: str
    bytes_per_step: dict[str, float]
    """Sent, received, and what the algorithm predicts to be sent: medians."""
    rates: dict[str, float]
    """Sent and received, bytes a second of the steps' time."""
    busy_rates: dict[str, float]
    """Sent and received between two readings of the sensors: the 95th percentile of those in which
    the link was busy, which single outliers cannot raise."""
    burst_rates: dict[str, float]
    """Sent and received in the fastest tenth of a second of a reading: the median of the busy
    ones. At a capped port it is the cap; elsewhere bytes pass in bursts that are faster."""
    reading_s: float
    """Between two of them."""
    interface: str
    """LOOPBACK: all ranks are on this host."""
    port_rate: float
    """Bytes a second that the port says it can."""
    retransmitted: float
    """Share of the TCP segments that were sent more than once."""

    @property
    def carried(self) -> float:
        """The highest rate that was seen, in either direction."""
        seen = [*self.rates.values(), *self.busy_rates.values()]
        return max(known(seen), default=math.nan)


def host_traffic_of(
    attempts: Sequence[Attempt],
    steps_by_rank: Mapping[int, Table],
    sensors: Mapping[str, HostSensors],
    is_local: bool,
) -> list[HostTraffic]:
    """Returns the traffic of each host that has counted it, in the order of the ranks.

    `is_local`: whether ranks take steps of their own.
    """
    counted: dict[str, list[Array]] = defaultdict(list)
    for attempt in attempts:
        for rank, steps in steps_of_attempt(attempt.number, steps_by_rank).items():
            ways = (group_column(steps, "traffic_bytes", way) for way in (*WAYS, "predicted"))
            columns = np.stack([*ways, steps["step_s"]])
            is_counted = ~np.isnan(columns[0]) & (columns[-1] > 0)
            if is_counted.any():
                counted[host_of(attempt, rank)].append(columns[:, is_counted])
    has_one_host = is_on_one_host(attempts)
    return [
        _traffic_of(
            np.concatenate(pieces, axis=1),
            sensors.get(host, HostSensors(host)),
            has_one_host,
            is_local,
        )
        for host, pieces in counted.items()
    ]


def _traffic_of(
    columns: Array, sensors: HostSensors, has_one_host: bool, is_local: bool
) -> HostTraffic:
    """`columns`: sent, received and predicted bytes and the seconds of each step."""
    sent, received, predicted, step_s = columns
    # Where there is one host, nothing that its ranks say to each other passes a port.
    interface = LOOPBACK if has_one_host else sensors.busiest_interface(with_loopback=False)
    segments = sensors.gained("tcp/sent_segments_total")
    again = sensors.gained("tcp/retransmitted_segments_total")
    # Where ranks synchronize only now and then, some steps send much and others next to nothing.
    usual = known_mean if is_local else known_median
    return HostTraffic(
        host=sensors.host,
        bytes_per_step={
            "sent": usual(sent),
            "received": usual(received),
            "predicted": usual(predicted),
        },
        rates={
            "sent": float(np.nansum(sent) / step_s.sum()),
            "received": float(np.nansum(received) / step_s.sum()),
        },
        busy_rates={
            way: _busy(sensors.rates(f"network/{interface}/{way}_bytes_total"), 95) for way in WAYS
        },
        burst_rates={
            way: _busy(sensors.levels(f"network/{interface}/{way}_peak_bytes_per_s"), 50)
            for way in WAYS
        },
        reading_s=sensors.reading_s,
        interface=interface,
        port_rate=sensors.port_rate(interface),
        retransmitted=again / segments if segments else math.nan,
    )


def _busy(rates: Array, percentile: float) -> float:
    """Returns a percentile of the rates of busy readings; NaN: there are none."""
    if not len(rates):
        return math.nan
    # One reading alone may be wrong, where a counter was read late.
    highest = float(np.percentile(rates, 99))
    return float(np.percentile(rates[rates >= BUSY_SHARE * highest], percentile))
