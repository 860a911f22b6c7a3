"""How busy the processor is, as a whole and with each rank of this host."""

import os
import time
from collections.abc import Mapping

import psutil

from dragoman.telemetry.sensors.sensor import Sensor

_IDLE = ("idle", "iowait")
# Linux counts these inside user and nice as well.
_COUNTED_TWICE = ("guest", "guest_nice")


class Processor(Sensor):
    def __init__(self, processes: Mapping[int, int]) -> None:
        """`processes`: rank -> process id."""
        super().__init__()
        self.cores = os.cpu_count()
        self.about = {"cpu": f"{self.cores} logical cores"}
        self._before = _times()
        self._processes = dict(processes)
        self._handles: dict[int, psutil.Process] = {}
        self._spent: dict[int, tuple[float, float]] = {}
        for rank in processes:
            self._percent_of(rank)

    def read(self) -> dict[str, float]:
        now, before = _times(), self._before
        self._before = now
        passed = {kind: max(0.0, now[kind] - before.get(kind, 0.0)) for kind in now}
        total = sum(passed.values()) or 1.0
        idle = sum(passed.get(kind, 0.0) for kind in _IDLE)
        values = {
            "cpu/percent": round(100 * (total - idle) / total, 2),
            "cpu/iowait_percent": round(100 * passed.get("iowait", 0.0) / total, 2),
            "cpu/steal_percent": round(100 * passed.get("steal", 0.0) / total, 2),
            "cpu/load": round(os.getloadavg()[0], 2),
        }
        for rank in self._processes:
            name = f"rank/{rank}/cpu_percent"
            if name not in self.missing and (percent := self._percent_of(rank)) is not None:
                values[name] = percent
        return values

    def _percent_of(self, rank: int) -> float | None:
        """Returns what the rank has used of one core since the last call."""
        try:
            handle = self._handles.setdefault(rank, psutil.Process(self._processes[rank]))
            times = handle.cpu_times()
        except psutil.Error as error:
            self._handles.pop(rank, None)
            self.missing[f"rank/{rank}/cpu_percent"] = str(error)
            return None
        at, spent_s = time.monotonic(), times.user + times.system
        before_at, before_s = self._spent.get(rank, (at, spent_s))
        self._spent[rank] = at, spent_s
        if at == before_at:
            return None
        return round(max(0.0, 100 * (spent_s - before_s) / (at - before_at)), 1)


def _times() -> dict[str, float]:
    times: dict[str, float] = psutil.cpu_times()._asdict()
    return {kind: seconds for kind, seconds in times.items() if kind not in _COUNTED_TWICE}
