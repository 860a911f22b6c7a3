"""What a check says of the way between workers: rates, latencies, the cores' part in it. Pure."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from dragoman.check.ports import MORE_BY_SEVERAL
from dragoman.check.result import CheckResult, HostFacts, Transfer
from dragoman.errors import UserError
from dragoman.forecast.layout import FP32_BYTES
from dragoman.forecast.processing import CPU
from dragoman.forecast.quantity import Quantity, assumed, exact, measured
from dragoman.plan.from_assumption import (
    CONTENTION_WIDTH,
    GLOO_ALL_TO_ALL,
    GLOO_RING,
    GLOO_WIDTH,
    LATENCY_S,
    LATENCY_WIDTH,
    QUEUE_BYTES,
    QUEUE_WIDTH,
)

RATE_WIDTH = 0.05
"""Least width of a measured rate: another hour has other neighbors on the network."""
LATENCY_FACTOR = 1.0
"""A latency may be twice or half of what was measured: it depends on what hosts do meanwhile."""
USUAL_COUNTS = 3
"""Repetitions of a collective that the usual share of a link counts for."""
BOUND_BY_LINK = 3.0
"""Times by which the link is slower than the cores that feed it."""
BACKEND_LATENCY_S = 5e-5
"""That a backend adds to half of a measured round trip, where no collective was timed."""


class Calibrated(NamedTuple):
    """Rates in bytes of payload a second."""

    hop: Quantity
    send: Quantity
    receive: Quantity
    efficiency: float = 1.0
    """The ring's rate over that of its slowest hop alone."""
    spread_efficiency: float = 1.0
    """The ports' rate while all send to all, over that of the slowest alone."""


def latency_of(result: CheckResult, ranks: int) -> Quantity:
    """Returns the latency of one step of a ring, of which an all-reduce has 2 (ranks - 1)."""
    if result.collective and ranks > 1:
        seconds = result.collective.latency_s / (2 * (result.collective.ranks - 1))
        basis = "all-reduces of one number"
    elif result.transfers:
        trips = [transfer.round_trip_s for transfer in result.transfers]
        seconds = statistics.median(trips) / 2 + BACKEND_LATENCY_S
        basis = "round trips between hosts"
    else:
        return assumed(LATENCY_S, LATENCY_WIDTH, "assumed: what a switch and the backend take")
    return assumed(seconds, LATENCY_FACTOR, basis)._replace(is_measured=True)


def queue_of(bytes_per_s: float) -> Quantity:
    """Returns by how much a large message delays one step of a ring that carries a number."""
    return assumed(QUEUE_BYTES / bytes_per_s, QUEUE_WIDTH, "assumed: 64 kB in a queue")


def ports_of(result: CheckResult, latency_s: float, ranks: int, on_host: int) -> Calibrated | None:
    """Returns the rates of ring and ports; None: nothing was measured, as on a single host.

    One real all-reduce counts for more than transfers between pairs: it knows what the backend
    makes of them while all hosts send at once.
    """
    alone = _transfers(result.hosts, result.transfers)
    timed = result.collective
    if not timed or ranks == 1 or not timed.seconds:
        if len(result.hosts) > 1 and not alone:
            raise UserError(
                "the check has measured nothing between its hosts, so that nothing can be "
                "forecast from it; check them again"
            )
        return alone
    steps = 2 * (timed.ranks - 1)
    sent = steps / timed.ranks * FP32_BYTES * timed.elements
    basis = f"{len(timed.seconds)} all-reduces of {FP32_BYTES * timed.elements / 1e6:,.0f} MB"
    rates = _rates(sent, timed.seconds, steps * latency_s)
    if not alone:
        hop = measured(rates, basis, RATE_WIDTH)
        return Calibrated(hop, hop, hop)
    part = FP32_BYTES * timed.elements / timed.ranks
    crossing = on_host * (timed.ranks - on_host) * part
    spread = _rates(crossing, timed.all_to_all_s, latency_s)
    # Otherwise it is the cores that gloo is bound by, of which the usual shares say nothing.
    is_usual = timed.backend == "gloo" and alone.hop.value < 1 / (
        BOUND_BY_LINK * CPU.communication_s_per_byte
    )
    hop = _pooled(alone.hop, rates, GLOO_RING if is_usual else None, basis)
    slowest = min(alone.send, alone.receive)  # by value, the first field
    port = _pooled(slowest, spread, GLOO_ALL_TO_ALL if is_usual else None, basis)
    return Calibrated(
        *(hop, port, port),
        efficiency=min(1.0, hop.value / alone.hop.value),
        spread_efficiency=min(1.0, port.value / slowest.value),
    )


def _rates(sent: float, seconds: Sequence[float], latency_s: float) -> list[float]:
    """Returns bytes a second, however large the latency of a small message was."""
    return [sent / max(each - latency_s, each / 2) for each in seconds if each]


def _pooled(link: Quantity, rates: Sequence[float], usual: float | None, basis: str) -> Quantity:
    """Returns what a collective makes of a link.

    A few of them may all have been lucky: whether gloo's two directions take turns is a matter of
    microseconds, and a run averages over thousands. So the usual share of a link counts like some
    repetitions more.
    """
    if usual is None:
        return measured(rates, basis, RATE_WIDTH) if rates else link
    # No ring is faster than its slowest hop, so that a transfer which was slower met with mishap.
    carries = max(link.value, *rates) if rates else link.value
    samples = [*rates, *([usual * carries] * USUAL_COUNTS)]
    return measured(samples, basis, GLOO_WIDTH)


def _transfers(hosts: Sequence[HostFacts], transfers: Sequence[Transfer]) -> Calibrated | None:
    """Returns the slowest hop of the ring, with one flow as the backend has, and the slowest
    ports, with several."""
    if not transfers:
        return None
    names = [host.name for host in hosts]
    flows = {(each.sender, each.receiver): each for each in transfers}
    around = [*zip(names, [*names[1:], names[0]], strict=True)]
    hops = [_by_one_flow(flows[pair]) for pair in around if pair in flows]
    sending = [
        max(each.several_flows_bytes_per_s for each in transfers if each.sender == name)
        for name in {each.sender for each in transfers}
    ]
    receiving = [
        max(each.several_flows_bytes_per_s for each in transfers if each.receiver == name)
        for name in {each.receiver for each in transfers}
    ]
    basis = f"{len(transfers)} transfers between hosts"
    return Calibrated(
        measured([min(hops or sending)], basis, RATE_WIDTH),
        measured([min(sending)], basis, RATE_WIDTH),
        measured([min(receiving)], basis, RATE_WIDTH),
    )


def _by_one_flow(found: Transfer) -> float:
    """A second of one flow may have met a lost packet; several flows tell what the way carries."""
    one, several = found.one_flow_bytes_per_s, found.several_flows_bytes_per_s
    return one if several > MORE_BY_SEVERAL * one else max(one, several)


def contention_of(result: CheckResult, is_cpu: bool, ranks: int) -> Quantity:
    """Returns the time of computing cores for each byte of a collective.

    The measured all-reduce bounds it on both sides: what it took beyond the time of its bytes on
    the wire was the cores' work, and they cannot have worked for longer than it took.
    """
    if not is_cpu:
        return exact(0.0, "assumed: none, since a GPU computes")
    usual = CPU.communication_s_per_byte
    timed = result.collective
    if not timed or ranks == 1 or not timed.seconds:
        return assumed(usual, CONTENTION_WIDTH, "assumed: gloo's own work on the same cores")
    sent = 2 * (timed.ranks - 1) / timed.ranks * FP32_BYTES * timed.elements
    took_s = statistics.median(timed.seconds)
    wire = _transfers(result.hosts, result.transfers)
    wire_s = sent / wire.hop.value if wire else 0.0
    least = max(0.0, took_s - wire_s) / sent if wire else 0.0
    most = took_s / sent
    value = min(max(usual, least), most)
    low, high = (
        max(least, value / (1 + CONTENTION_WIDTH)),
        min(most, value * (1 + CONTENTION_WIDTH)),
    )
    return Quantity(
        value,
        min(low, value),
        max(high, value),
        is_measured=value != usual,
        basis="gloo's own work on the same cores, within what the all-reduce allows",
    )
