"""Reads what a run has recorded, for tests."""

from typing import TypeVar

from dragoman.rundir import RunDir
from dragoman.telemetry.read.events import read_events

Kind = TypeVar("Kind")


def events(run: RunDir, kind: type[Kind]) -> list[Kind]:
    """Returns the events of one kind, of all ranks and attempts."""
    found = [recorded.stamped.event for recorded in read_events(run)]
    return [event for event in found if isinstance(event, kind)]
