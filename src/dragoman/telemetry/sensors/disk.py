"""What the host's disks read and write, and what is left where the run is kept."""

import shutil
from pathlib import Path

import psutil

from dragoman.telemetry.sensors.sensor import AbsentError, Sensor

_DISKS = Path("/sys/block")


class Disk(Sensor):
    def __init__(self, run_folder: Path) -> None:
        super().__init__()
        self._folder = run_folder
        self._disks = _real_disks()

    def read(self) -> dict[str, float]:
        counters = psutil.disk_io_counters(perdisk=True, nowrap=False) or {}
        disks = [counters[name] for name in self._disks if name in counters]
        usage = shutil.disk_usage(self._folder)
        if not disks:
            self.missing["disk/read_bytes_total"] = "the system shows no disks"
            return {"disk/run_free_bytes": usage.free, "disk/run_size_bytes": usage.total}
        return {
            "disk/read_bytes_total": sum(disk.read_bytes for disk in disks),
            "disk/written_bytes_total": sum(disk.write_bytes for disk in disks),
            "disk/run_free_bytes": usage.free,
            "disk/run_size_bytes": usage.total,
        }


def _real_disks() -> list[str]:
    """Returns the disks without their partitions and without what is made of other disks, whose
    bytes would count twice."""
    try:
        return [path.name for path in _DISKS.iterdir() if "/virtual/" not in str(path.resolve())]
    except OSError as error:
        raise AbsentError(f"{_DISKS} cannot be read: {error.strerror}") from error
