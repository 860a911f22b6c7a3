"""What each host sends and receives for the steps, and what its link is known to carry."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dragoman.diagnosis.run.hosts import LOOPBACK, HostSensors, host_of
from dragoman.diagnosis.run.record import RunRecord
from dragoman.diagnosis.run.timeline import RunTimeline
from dragoman.diagnosis.speed.bottleneck import Link, messages_of
from dragoman.model.size import size_of
from dragoman.telemetry.read.columns import Array
from dragoman.telemetry.read.rows import group_column

WAYS = ("sent", "received")


class HostTraffic(NamedTuple):
    """Of one host, in the steps that count. NaN: not recorded."""

    host: str
    bytes_per_step: dict[str, float]
    """Sent, received, and what the algorithm predicts to be sent: medians."""
    rates: dict[str, float]
    """Sent and received, bytes a second of the steps' time."""
    peak_rates: dict[str, float]
    """The most that passed between two readings of the sensors."""
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
        seen = [*self.rates.values(), *self.peak_rates.values()]
        return max((rate for rate in seen if not math.isnan(rate)), default=math.nan)


def host_traffic_of(timeline: RunTimeline, sensors: Mapping[str, HostSensors]) -> list[HostTraffic]:
    """Of each host that has counted, in the order of the ranks."""
    counted: dict[str, list[tuple[Array, ...]]] = defaultdict(list)
    for attempt in timeline.attempts:
        for rank, steps in timeline.steps_by_rank.items():
            begin, end = np.searchsorted(steps["attempt"], [attempt.number, attempt.number + 1])
            sent, received, predicted = (
                group_column(steps, "traffic_bytes", way)[begin:end] for way in (*WAYS, "predicted")
            )
            step_s = steps["step_s"][begin:end]
            told = ~np.isnan(sent) & (step_s > 0)
            if told.any():
                columns = (sent[told], received[told], predicted[told], step_s[told])
                counted[host_of(attempt, rank)].append(columns)
    has_one_host = len({host for a in timeline.attempts for host in a.host_names}) <= 1
    return [
        _of_host(host, pieces, sensors.get(host), has_one_host) for host, pieces in counted.items()
    ]


def _of_host(
    host: str,
    pieces: Sequence[tuple[Array, ...]],
    sensors: HostSensors | None,
    has_one_host: bool,
) -> HostTraffic:
    sent, received, predicted, step_s = (
        np.concatenate(columns) for columns in zip(*pieces, strict=True)
    )
    total_s = float(step_s.sum())
    interface = sensors.busiest_interface(with_loopback=False) if sensors else ""
    if has_one_host:  # nothing that its ranks say to each other passes a port
        interface = LOOPBACK
    peaks = dict.fromkeys(WAYS, math.nan)
    port_rate = retransmitted = reading_s = math.nan
    if sensors and interface:
        for way in WAYS:
            seen = sensors.rates(f"network/{interface}/{way}_bytes_total")
            peaks[way] = float(seen.max()) if len(seen) else math.nan
        port_rate = sensors.port_rate(interface)
        reading_s = sensors.reading_s
        segments = sensors.gained("tcp/sent_segments_total")
        again = sensors.gained("tcp/retransmitted_segments_total")
        retransmitted = again / segments if segments else math.nan
    return HostTraffic(
        host=host,
        bytes_per_step={
            "sent": _median(sent),
            "received": _median(received),
            "predicted": _median(predicted),
        },
        rates={
            "sent": float(np.nansum(sent)) / total_s,
            "received": float(np.nansum(received)) / total_s,
        },
        peak_rates=peaks,
        reading_s=reading_s,
        interface=interface,
        port_rate=port_rate,
        retransmitted=retransmitted,
    )


def _median(values: Array) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else math.nan


def gradient_bytes(record: RunRecord) -> float:
    """Of one rank in fp32."""
    passport = record.passport
    vocabulary = passport.vocabulary if passport else record.config.tokenizer.vocabulary
    return float(size_of(record.config.model, vocabulary).gradient_bytes)


def link_between(record: RunRecord, nodes: Sequence[HostTraffic]) -> Link:
    """The node that sends most, over the link that can least: a ring is as fast as that one."""

    def least(values: Iterable[float]) -> float:
        return min((value for value in values if not math.isnan(value)), default=math.nan)

    return Link(
        messages=messages_of(gradient_bytes(record)),
        bytes_per_step=max((n.bytes_per_step["sent"] for n in nodes), default=math.nan),
        carried=least(node.carried for node in nodes),
        port_rate=least(node.port_rate for node in nodes),
        reading_s=max((node.reading_s for node in nodes), default=math.nan),
    )
