"""Reads all sensors of a host now and then, and records what they say and which are not there."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dragoman.telemetry.events import Event, SensorReading, SensorsFound
from dragoman.telemetry.sensors.disk import Disk
from dragoman.telemetry.sensors.gpu import Gpus
from dragoman.telemetry.sensors.memory import Memory
from dragoman.telemetry.sensors.network import Network, Tcp, announced_link_rates
from dragoman.telemetry.sensors.processor import Processor
from dragoman.telemetry.sensors.sensor import Sensor

RETRY_EVERY_S = 60.0
"""How often what was absent is tried again."""
CLOSE_TIMEOUT_S = 2.0

Makers = Mapping[str, Callable[[], Sensor]]


def sensors_of_host(run_folder: Path, processes: Mapping[int, int]) -> Makers:
    """Name -> what makes the sensor. `processes`: rank -> process id, of the ranks on this host."""

    # The slowest first: what counts bytes should be read right before the event is stamped.
    return {
        "gpu": Gpus,
        "disk": lambda: Disk(run_folder),
        "memory": lambda: Memory(processes),
        "processor": lambda: Processor(processes),
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
    """Sample on a thread of its own as long as the context lasts; 0 seconds: not at all.

    For one rank of each host, the one whose local rank is 0.
    """
    if every_s == 0:
        yield
        return
    ended = threading.Event()
    sampler = Sampler(emit, makers, host)

    def work() -> None:
        due_at = time.monotonic()
        while not ended.wait(max(0.0, due_at - time.monotonic())):
            sampler.sample(time.monotonic())
            # On a grid, and without making up for readings that a busy machine has missed.
            due_at = max(due_at + every_s, time.monotonic())

    thread = threading.Thread(target=work, name="sensors", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(CLOSE_TIMEOUT_S)  # a sensor may hang, on a dead network disk for one


@dataclass
class _Place:
    """Where a sensor is, or would be."""

    make: Callable[[], Sensor]
    sensor: Sensor | None = None
    reason: str = ""
    retry_at: float = 0.0


class Sampler:
    def __init__(self, emit: Callable[[Event], None], makers: Makers, host: str) -> None:
        self._emit, self._host = emit, host
        self._places = {name: _Place(make) for name, make in makers.items()}
        self._told: tuple[set[str], set[str]] | None = None

    def sample(self, now: float) -> None:
        """One reading of all sensors. What is there and what is not is told when it changes."""
        values: dict[str, float] = {}
        for place in self._places.values():
            values |= _read(place, now)
        self._tell_what_is_there()
        if values:
            self._emit(SensorReading(values))

    def _tell_what_is_there(self) -> None:
        present = [name for name, place in self._places.items() if place.sensor]
        absent = {name: place.reason for name, place in self._places.items() if not place.sensor}
        about: dict[str, str] = {}
        for place in self._places.values():
            if place.sensor:
                absent |= place.sensor.missing
                about |= place.sensor.about
        if self._told != (set(present), set(absent)):
            self._told = set(present), set(absent)
            self._emit(
                SensorsFound(
                    self._host, present, absent, about, os.cpu_count(), announced_link_rates()
                )
            )


def _read(place: _Place, now: float) -> dict[str, float]:
    if now >= place.retry_at:
        place.retry_at = now + RETRY_EVERY_S
        if place.sensor:
            place.sensor.missing.clear()
        else:
            try:
                place.sensor = place.make()
            except Exception as error:  # whatever an instrument does, the others are read
                place.reason = _in_words(error)
    if place.sensor is None:
        return {}
    try:
        return place.sensor.read()
    except Exception as error:
        place.sensor, place.reason = None, _in_words(error)
        place.retry_at = now + RETRY_EVERY_S
        return {}


def _in_words(error: Exception) -> str:
    return str(error) or type(error).__name__
