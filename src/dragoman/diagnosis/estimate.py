"""A value with its 95 % interval, which is what every statistic of the diagnosis returns. Pure."""

from typing import NamedTuple

from dragoman.diagnosis.findings import Figure
from dragoman.telemetry.read.tables import Array

Z_95 = 1.96


class Estimate(NamedTuple):
    value: float
    low: float
    """With `high` the 95 % interval."""
    high: float

    @classmethod
    def of(cls, value: float, error: float) -> "Estimate":
        """Returns the estimate of a value with this standard error."""
        return cls(value, value - Z_95 * error, value + Z_95 * error)

    @property
    def error(self) -> float:
        """About one standard error."""
        return (self.high - self.low) / (2 * Z_95)

    def figure(self, name: str, unit: str, note: str = "") -> Figure:
        return Figure(name, self.value, unit, self.low, self.high, note)


def autocorrelation(residuals: Array) -> float:
    """Returns the correlation of neighbors: where they err alike, an interval is wider."""
    squares = float(residuals @ residuals)
    return float(residuals[:-1] @ residuals[1:]) / squares if squares > 0 else 0.0
