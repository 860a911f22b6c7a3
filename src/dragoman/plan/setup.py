"""The cluster that a plan is for: a check or an assumption comes in, rates and times go out.

Every figure keeps its interval and says whether it was measured. The model itself knows numbers
alone, so a setup gives it three cases: the likely one, and the fastest and slowest that the
intervals allow.
"""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from dragoman.forecast.collectives import Network
from dragoman.forecast.computing import passes_of
from dragoman.forecast.processing import Processor
from dragoman.forecast.quantity import Quantity, exact
from dragoman.forecast.step import Work

Case: TypeAlias = Literal["likely", "fast", "slow"]
CASES: tuple[Case, ...] = ("likely", "fast", "slow")

LOCAL_LATENCY_S = 2e-5
"""Between two workers of one host."""
LOCAL_RATE = 2e9
"""Bytes a second between two workers of one host, over loopback or PCIe, where not measured."""
NO_QUEUE = exact(0.0, "assumed: none")


@dataclass(frozen=True)
class Computing:
    """What one worker would take for all micro-batches of an update, in seconds."""

    forward_s: float
    backward_s: float
    update_s: float
    """Of every worker, however many there are."""
    rest_s: float
    micro_batches: int
    """Of an update."""
    factor: Quantity
    """By which all of it may be off: about 1."""

    def work(self, ranks: int, case: Case) -> Work:
        """Returns the computing of the worker with the most micro-batches."""
        count = self.micro_batches
        while count < ranks:  # of half the size each
            count *= 2
        passes = passes_of(count, ranks)
        share = passes / count
        work = Work(
            forward_s=share * self.forward_s,
            backward_s=share * self.backward_s,
            last_backward_s=self.backward_s / count,
            update_s=self.update_s,
            rest_s=self.rest_s,
        )
        return work.times(_in(self.factor, case, slow_is_high=True))

    def times(self, updates: float) -> "Computing":
        """Returns the computing of updates that are so many times as large, or a part as large."""
        return replace(
            self,
            forward_s=updates * self.forward_s,
            backward_s=updates * self.backward_s,
            micro_batches=max(1, round(updates * self.micro_batches)),
        )


@dataclass(frozen=True)
class Setup:
    origin: str
    """Where its figures come from, in one sentence."""
    hosts: int
    ranks_on_host: int
    hop_rate: Quantity
    """Bytes of payload a second, as in `Network`."""
    send_rate: Quantity
    receive_rate: Quantity
    latency_s: Quantity
    local_rate: Quantity
    computing: Computing
    processor: Processor
    contention: Quantity
    """`Processor.communication_s_per_byte`."""
    device: str
    memory_bytes: Quantity | None
    """Of one device."""
    prices: tuple[float, ...]
    """Of each host and hour; 0: not known."""
    link_efficiency: float = 1.0
    """Share of a port's payload rate that a ring reaches."""
    queue_s: Quantity = NO_QUEUE
    """As in `Network`."""
    spread_efficiency: float = 1.0
    """Share of it that an exchange of all with all reaches."""
    peak_memory_bytes: Quantity | None = None
    """Of a worker, as measured with the recipe's own micro-batches."""

    @property
    def ranks(self) -> int:
        return self.hosts * self.ranks_on_host

    @property
    def price_per_hour(self) -> float | None:
        """Returns the price of all hosts; None: none is known."""
        return sum(self.prices) if any(self.prices) else None

    def with_hosts(self, hosts: int) -> "Setup":
        """Returns the same with more or fewer hosts, each at the mean price."""
        price = sum(self.prices) / len(self.prices)
        return replace(self, hosts=hosts, prices=(price,) * hosts)

    def with_rate(self, payload_bytes_per_s: float) -> "Setup":
        """Returns the same with other ports; their intervals are as wide as before, and queues
        hold as many bytes."""
        ring = payload_bytes_per_s * self.link_efficiency / self.hop_rate.value
        spread = payload_bytes_per_s * self.spread_efficiency / self.hop_rate.value
        port = self.hop_rate.map(lambda rate: spread * rate)
        return replace(
            self,
            queue_s=self.queue_s.map(lambda seconds: seconds / ring),
            hop_rate=self.hop_rate.map(lambda rate: ring * rate),
            send_rate=port,
            receive_rate=port,
        )

    def network(self, case: Case) -> Network:
        return Network(
            hosts=self.hosts,
            ranks_on_host=self.ranks_on_host,
            hop_rate=_in(self.hop_rate, case, slow_is_high=False),
            send_rate=_in(self.send_rate, case, slow_is_high=False),
            receive_rate=_in(self.receive_rate, case, slow_is_high=False),
            latency_s=_in(self.latency_s, case, slow_is_high=True),
            local_rate=_in(self.local_rate, case, slow_is_high=False),
            local_latency_s=LOCAL_LATENCY_S,
            queue_s=_in(self.queue_s, case, slow_is_high=True),
        )

    def processor_in(self, case: Case) -> Processor:
        seconds = _in(self.contention, case, slow_is_high=True)
        return self.processor._replace(communication_s_per_byte=seconds)

    def work(self, case: Case) -> Work:
        return self.computing.work(self.ranks, case)


def _in(figure: Quantity, case: Case, slow_is_high: bool) -> float:
    if case == "likely":
        return figure.value
    return figure.high if (case == "slow") == slow_is_high else figure.low
