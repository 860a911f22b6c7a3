"""Counts the bytes of each step on the interface between ranks, and predicts them."""

from collections import Counter

from dragoman.config import Config
from dragoman.distributed.group import Group
from dragoman.distributed.interfaces import interface_between_ranks
from dragoman.distributed.ring_bytes import bytes_of_mode, bytes_per_step, on_the_wire
from dragoman.telemetry.sensors.interface import (
    InterfaceCounters,
    packet_size,
    read_interface_counters,
)


class StepTraffic:
    """Counts on one rank of each host; on the others, and alone, there is nothing to count."""

    def __init__(self, config: Config, group: Group, parameters: int, hosts: list[str]) -> None:
        self._interface = interface_between_ranks() if group.ranks > 1 else None
        if group.local_rank != 0:
            self._interface = None
        here, packet_bytes = Counter(hosts)[group.host], packet_size(self._interface or "")

        def predicted(ends_window: bool) -> float:
            if config.training.sharding == "full":
                payload = bytes_per_step(parameters, group.ranks, here, sharded=True)
            else:
                payload = bytes_of_mode(
                    config.sync, parameters, group.ranks, here, len({*hosts}), ends_window
                )
            return on_the_wire(payload, packet_bytes)

        self._predicted = {ends_window: predicted(ends_window) for ends_window in (False, True)}
        self._before: InterfaceCounters | None = None

    def begin_step(self) -> None:
        self._before = read_interface_counters(self._interface) if self._interface else None

    def of_step(self, ends_window: bool = True) -> dict[str, float]:
        """Returns the bytes since the step began; empty where nothing can be counted.

        `ends_window`: whether the ranks have synchronized at its end, where not every step does.
        """
        now = read_interface_counters(self._interface) if self._interface else None
        if now is None or self._before is None:
            return {}
        sent, received = now.since(self._before)
        return {"sent": sent, "received": received, "predicted": self._predicted[ends_window]}
