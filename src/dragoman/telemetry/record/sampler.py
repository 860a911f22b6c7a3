"""Reads all sensors of a host at intervals, and emits their readings and which are absent."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from dragoman.telemetry.events import Event, SensorReading, SensorsFound
from dragoman.telemetry.sensors.disk import Disk
from dragoman.telemetry.sensors.gpu import Gpus
from dragoman.telemetry.sensors.memory import Memory
from dragoman.telemetry.sensors.network import Network, Tcp
from dragoman.telemetry.sensors.processes import Processes
from dragoman.telemetry.sensors.processor import Processor
from dragoman.telemetry.sensors.sensor import Sensor

GLANCE_EVERY_S = 0.1
"""Between two readings, for what comes in bursts."""
RETRY_EVERY_S = 60.0
"""How often what was absent is tried again."""
CLOSE_TIMEOUT_S = 2.0

Makers = Mapping[str, Callable[[], Sensor]]


def sensors_of_host(run_folder: Path, processes: Mapping[int, int]) -> Makers:
    """Returns name -> what makes the sensor. `processes`: rank -> process id, of the ranks on this
    host."""
    # The slowest first: what counts bytes should be read right before the event is stamped.
    return {
        "gpu": Gpus,
        "disk": lambda: Disk(run_folder),
        "memory": Memory,
        "processes": lambda: Processes(processes),
        "processor": Processor,
        "tcp": Tcp,
        "network": Network,
    }


@contextmanager
def sampling(
    emit: Callable[[Event], None],
    makers: Makers,
    host: str,
    every_s: float,
) -> Iterator[None]:
    """Samples on a thread of its own as long as the context lasts; 0 seconds: not at all.

    For one rank of each host, the one whose local rank is 0.
    """
    if every_s == 0:
        yield
        return
    ended = threading.Event()
    sampler = Sampler(emit, makers, host)

    def work() -> None:
        due_at = glance_at = time.monotonic()
        while not ended.wait(max(0.0, min(due_at, glance_at) - time.monotonic())):
            now = time.monotonic()
            # On a grid, and without making up for readings that a busy machine has missed.
            glance_at = max(glance_at + GLANCE_EVERY_S, now)
            if now < due_at:
                sampler.glance()
            else:
                sampler.sample(now)
                due_at = max(due_at + every_s, time.monotonic())

    thread = threading.Thread(target=work, name="sensors", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(CLOSE_TIMEOUT_S)  # a sensor may hang, on a dead network disk for one


@dataclass
class _Slot:
    """Where a sensor is, or would be."""

    make: Callable[[], Sensor]
    sensor: Sensor | None = None
    reason: str = ""
    retry_at: float = 0.0

    def glance(self) -> None:
        if self.sensor:
            with suppress(Exception):  # the next reading finds out what is wrong with it
                self.sensor.glance()

    def read(self, now: float) -> dict[str, float]:
        """Returns nothing where the sensor is absent or fails, which is tried again later."""
        try:
            if now >= self.retry_at:
                self.retry_at = now + RETRY_EVERY_S
                if self.sensor:
                    self.sensor.missing.clear()
                else:
                    self.sensor = self.make()
            return self.sensor.read() if self.sensor else {}
        except Exception as error:  # whatever an instrument does, the others are read
            self.sensor, self.reason = None, str(error) or type(error).__name__
            self.retry_at = now + RETRY_EVERY_S
            return {}


class Sampler:
    def __init__(self, emit: Callable[[Event], None], makers: Makers, host: str) -> None:
        self._emit, self._host = emit, host
        self._slots = {name: _Slot(make) for name, make in makers.items()}
        self._emitted: tuple[set[str], set[str]] | None = None

    def glance(self) -> None:
        for slot in self._slots.values():
            slot.glance()

    def sample(self, now: float) -> None:
        """Emits one reading of all sensors, before it what is there and what is not if that has
        changed."""
        values: dict[str, float] = {}
        for slot in self._slots.values():
            values |= slot.read(now)
        found = self._found()
        if self._emitted != (set(found.present), set(found.absent)):
            self._emitted = set(found.present), set(found.absent)
            self._emit(found)
        if values:
            self._emit(SensorReading(values))

    def _found(self) -> SensorsFound:
        sensors = {name: slot.sensor for name, slot in self._slots.items() if slot.sensor}
        absent = {name: slot.reason for name, slot in self._slots.items() if not slot.sensor}
        found = SensorsFound(self._host, list(sensors), absent)
        for sensor in sensors.values():
            found.absent.update(sensor.missing)
            found.about.update(sensor.about)
            found.link_bytes_per_s.update(sensor.link_bytes_per_s)
        cores = next((sensor.cores for sensor in sensors.values() if sensor.cores), None)
        return replace(found, cores=cores)
