"""What all sensors have in common."""

from typing import Protocol


class AbsentError(Exception):
    """There is nothing of this kind to read here, and why."""


class Sensor(Protocol):
    missing: dict[str, str]
    """Values that this sensor should have and cannot read -> why; not asked for until removed."""
    about: dict[str, str]
    """Device -> what it is."""

    def read(self) -> dict[str, float]: ...
