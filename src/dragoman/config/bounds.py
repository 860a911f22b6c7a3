"""Numbers of a recipe: each comes in with its bounds, and goes out within them or is refused.

Every number has an upper bound: one that is far beyond reason is a typo, and would otherwise end in
an overflow or an endless loop hours later.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PlainValidator
from pydantic_core import PydanticCustomError

MOST_STEPS = 10**12
MOST_BEAM = 100
LARGEST_INTEGER = 2**63 - 1  # of TOML and of random number generators


@dataclass(frozen=True)
class Range:
    """The bounds of a number; called by pydantic with each value that is to be checked."""

    low: float
    high: float
    without_low: bool = False

    def __call__(self, value: float) -> float:
        # NaN is inside of nothing, because every comparison with it is false.
        if self.low <= value <= self.high and not (self.without_low and value == self.low):
            return value
        raise PydanticCustomError("range", "{bounds}", {"bounds": str(self)})

    def __str__(self) -> str:
        high = "2^63 - 1" if self.high == LARGEST_INTEGER else f"{self.high:,}"
        if self.without_low:
            return f"above {self.low:,} and at most {high}"
        return f"from {self.low:,} to {high}"


@dataclass(frozen=True)
class RangeOrAuto(Range):
    """The bounds of a whole number that may also be found by the program."""

    def __call__(self, value: Any) -> Any:
        if value == "auto" or (type(value) is int and self.low <= value <= self.high):
            return value
        raise PydanticCustomError("range", "{bounds}", {"bounds": str(self)})

    def __str__(self) -> str:
        return f'{super().__str__()}, or "auto"'


def between(low: float, high: float) -> AfterValidator:
    return AfterValidator(Range(low, high))


def above(low: float, high: float) -> AfterValidator:
    """`low` itself is excluded."""
    return AfterValidator(Range(low, high, without_low=True))


Steps = Annotated[int, between(1, MOST_STEPS)]
StepsOrZero = Annotated[int, between(0, MOST_STEPS)]
Amount = Annotated[int, between(1, 10**9)]
AmountOrZero = Annotated[int, between(0, 10**9)]
NumberOrAuto = Annotated[int | Literal["auto"], PlainValidator(RangeOrAuto(1, 10**9))]
Seed = Annotated[int, between(0, LARGEST_INTEGER)]
Beam = Annotated[int, between(1, MOST_BEAM)]
Layers = Annotated[int, between(1, 1000)]
LearningRate = Annotated[float, above(0, 100)]
Seconds = Annotated[float, above(0, 86_400)]
SecondsOrZero = Annotated[float, between(0, 86_400)]
Hours = Annotated[float, above(0, 1_000_000)]
Price = Annotated[float, between(0, 1_000_000)]
Share = Annotated[float, Field(ge=0.0, lt=1.0)]
# Nothing is learned from less than a tenth, and close to 1 nothing is left to scale up.
DropoutShare = Annotated[float, between(0, 0.9)]
