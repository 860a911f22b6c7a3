"""Counts the bytes of each step on the interface between ranks, and predicts them."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from dragoman.config import SyncSettings
from dragoman.distributed.fragments import FragmentSchedule, cut
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

    def __init__(
        self,
        settings: SyncSettings,
        sharding: Literal["none", "full"],
        group: Group,
        sizes: Sequence[int],
        hosts: Sequence[str],
    ) -> None:
        """`sizes`: elements of each tensor of the model; `hosts`: of each rank."""
        self._interface = interface_between_ranks() if group.ranks > 1 else None
        if group.local_rank != 0:
            self._interface = None
        self._ranks, self._here = group.ranks, Counter(hosts)[group.host]
        self._sizes, self._hosts = sizes, len({*hosts})
        self._sharding = sharding
        self._before: InterfaceCounters | None = None
        self._last: InterfaceCounters | None = None
        """At the end of the last step, if nothing but steps has sent anything since."""
        self.follow(settings)

    def follow(self, settings: SyncSettings) -> None:
        """Predicts what these settings send, from now on."""
        parameters, is_local = sum(self._sizes), settings.is_local
        if self._sharding == "full":
            payload = bytes_per_step(parameters, self._ranks, self._here, sharded=True)
        else:
            payload = bytes_of_mode(
                settings, parameters, self._ranks, self._here, self._hosts, len(self._sizes)
            )
        self._bytes = on_the_wire(payload, packet_size(self._interface or ""))
        """To make everything common once."""
        if settings.group == "host" and self._hosts == 1:
            is_local = False  # all ranks are one island
        self._goes_on_between_steps = is_local
        self._last = None
        self._fragments = FragmentSchedule.of(settings) if is_local else FragmentSchedule(1)
        members = cut(self._sizes, self._fragments.fragments)
        self._shares = [sum(self._sizes[at] for at in each) / parameters for each in members]

    def begin_step(self) -> None:
        """Fragments set out at the end of a step: what a fast link has sent of them before the next
        one begins is that one's."""
        self._before = self._last if self._goes_on_between_steps else None
        if self._before is None and self._interface:
            self._before = read_interface_counters(self._interface)

    def leave_out(self) -> None:
        """What was sent since the last step is no step's, but that of a save or an evaluation."""
        self._last = None

    def of_step(self, step: int, is_last: bool = False) -> dict[str, float]:
        """Returns the bytes since the step began; empty where nothing can be counted.

        What is predicted of a fragment is spread over the steps in which it may travel; a fast link
        has sent it sooner. At the end of the last step what is left of it has to be there, and then
        everything is made common.
        """
        self._last = now = read_interface_counters(self._interface) if self._interface else None
        if now is None or self._before is None:
            return {}
        sent, received = now.since(self._before)
        makes_common = is_last and self._fragments.window_steps > 1
        parts = (
            self._fragments.share_left(step) if makes_common else self._fragments.share_sent(step)
        )
        share = sum(part * self._shares[fragment] for fragment, part in parts.items())
        share += 1.0 if makes_common else 0.0
        return {"sent": sent, "received": received, "predicted": share * self._bytes}
