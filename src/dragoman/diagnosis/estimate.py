"""A value with its 95 % interval, which is what every statistic of the diagnosis returns."""

from typing import NamedTuple

from dragoman.diagnosis.findings import Figure

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
