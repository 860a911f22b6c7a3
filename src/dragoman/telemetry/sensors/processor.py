"""How busy the host's processor is."""

import os

import psutil

from dragoman.telemetry.sensors.sensor import Sensor


class Processor(Sensor):
    """Reads what has happened since the reading before, which must be on the same thread."""

    def __init__(self) -> None:
        super().__init__()
        self.cores = os.cpu_count()
        self.about = {"cpu": f"{self.cores} logical cores"}
        self.read()

    def read(self) -> dict[str, float]:
        shares = psutil.cpu_times_percent()
        return {
            "cpu/percent": psutil.cpu_percent(),
            "cpu/iowait_percent": getattr(shares, "iowait", 0.0),
            "cpu/steal_percent": getattr(shares, "steal", 0.0),
            "cpu/load": round(os.getloadavg()[0], 2),
        }
