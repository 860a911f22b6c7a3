"""What each rank of this host uses of its processor and its memory."""

from collections.abc import Mapping

import psutil

from dragoman.telemetry.sensors.sensor import Sensor


class Processes(Sensor):
    def __init__(self, ids: Mapping[int, int]) -> None:
        """`ids`: rank -> process id."""
        super().__init__()
        self._ids = dict(ids)
        self._handles: dict[int, psutil.Process] = {}

    def read(self) -> dict[str, float]:
        values: dict[str, float] = {}
        for rank, process_id in self._ids.items():
            if f"rank/{rank}" in self.missing:
                continue
            try:
                # Kept, since it knows what the process had used at the reading before.
                handle = self._handles.get(rank) or psutil.Process(process_id)
                self._handles[rank] = handle
                values |= {
                    f"rank/{rank}/cpu_percent": handle.cpu_percent(),  # 100: one core
                    f"rank/{rank}/resident_bytes": handle.memory_info().rss,
                }
            except psutil.Error as error:
                self.missing[f"rank/{rank}"] = str(error)
        return values
