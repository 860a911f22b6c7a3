"""What all sensors have in common."""

from abc import ABC, abstractmethod


class AbsentError(Exception):
    """There is nothing of this kind to read here, and why."""


class Sensor(ABC):
    """One kind of instrument. Making it raises AbsentError where there is nothing to read."""

    def __init__(self) -> None:
        self.missing: dict[str, str] = {}
        """Values that this sensor should have and cannot read -> why; not asked for until
        removed."""
        self.about: dict[str, str] = {}
        """Device -> what it is, for people."""
        self.cores: int | None = None
        """Logical processors of the host; the processor's sensor knows them."""
        self.link_bytes_per_s: dict[str, float] = {}
        """Interface -> the rate that it announces; the network's sensor knows them."""

    def glance(self) -> None:  # noqa: B027 - most sensors need none
        """Notes what a reading now and then would miss; called many times between two of them, so
        it must be quick."""

    @abstractmethod
    def read(self) -> dict[str, float]:
        """Returns the values of this moment by their names."""
