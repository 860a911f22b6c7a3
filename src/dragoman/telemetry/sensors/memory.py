"""Memory of the host."""

import psutil

from dragoman.telemetry.sensors.sensor import Sensor


class Memory(Sensor):
    def read(self) -> dict[str, float]:
        memory, swap = psutil.virtual_memory(), psutil.swap_memory()
        return {
            "memory/total_bytes": memory.total,
            "memory/used_bytes": memory.used,
            "memory/available_bytes": memory.available,
            "memory/swap_used_bytes": swap.used,
            "memory/swap_in_bytes_total": swap.sin,
            "memory/swap_out_bytes_total": swap.sout,
        }
