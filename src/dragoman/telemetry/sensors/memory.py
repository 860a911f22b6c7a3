"""Memory of the host, and what each of its ranks holds of it."""

from collections.abc import Mapping

import psutil

from dragoman.telemetry.sensors.sensor import Sensor


class Memory(Sensor):
    def __init__(self, processes: Mapping[int, int]) -> None:
        """`processes`: rank -> process id."""
        super().__init__()
        self._processes = dict(processes)

    def read(self) -> dict[str, float]:
        memory, swap = psutil.virtual_memory(), psutil.swap_memory()
        values: dict[str, float] = {
            "memory/total_bytes": memory.total,
            "memory/used_bytes": memory.used,
            "memory/available_bytes": memory.available,
            "memory/swap_used_bytes": swap.used,
            "memory/swap_in_bytes_total": swap.sin,
            "memory/swap_out_bytes_total": swap.sout,
        }
        for rank, process in self._processes.items():
            name = f"rank/{rank}/resident_bytes"
            if name in self.missing:
                continue
            try:
                values[name] = psutil.Process(process).memory_info().rss
            except psutil.Error as error:
                self.missing[name] = str(error)
        return values
