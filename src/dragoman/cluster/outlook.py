"""What a run on several hosts asks of whoever knows forecasts, which stand downstream of it."""

from collections.abc import Callable, Mapping
from typing import Protocol

from dragoman.cluster.preflight import Ready
from dragoman.cluster.supervise import Agents


class Outlook(Protocol):
    def before_start(
        self, ready: Ready, agents: Agents, is_stopping: Callable[[], bool]
    ) -> Mapping[str, str]:
        """Looks ahead once, before data is copied and workers start; raises to refuse the start.

        It may have the agents measure something. Returns variables for the workers of attempts
        with these very hosts.
        """
        ...

    def record_came(self, host: str, name: str, text: str) -> None:
        """Takes a piece of the run's records as it comes home, from any thread."""
        ...


class NoOutlook:
    """Neither measures nor forecasts."""

    def before_start(
        self, ready: Ready, agents: Agents, is_stopping: Callable[[], bool]
    ) -> Mapping[str, str]:
        return {}

    def record_came(self, host: str, name: str, text: str) -> None:
        pass
