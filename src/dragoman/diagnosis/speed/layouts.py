"""How fast, and at what price, a run went on as many hosts as each of its attempts had. Pure.

A run may go on with more hosts or fewer. Steps of different layouts are never averaged: no attempt
had such a step.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dragoman.config import CostSettings
from dragoman.diagnosis.phrasing import count, seconds
from dragoman.diagnosis.run.attempts import Attempt
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.host_traffic import HostTraffic
from dragoman.diagnosis.run.steps import StepParts, StepSplit
from dragoman.telemetry.read.tables import Array

ENOUGH_STEPS = 10
"""Of each of two layouts, before they are compared."""
ABOUT_EQUAL = 0.03
"""Relative: a smaller difference of two paces may be noise."""


class LayoutPace(NamedTuple):
    """The steps of all attempts with as many hosts and ranks. NaN: not recorded."""

    hosts: int
    ranks: int
    attempts: list[int]
    steps: int
    """Usual ones: not the first of an attempt, and no hangs."""
    split: StepSplit
    """Of the mean of these."""
    tokens_per_step: float
    """Target tokens of all ranks, in the mean of these."""
    traffic: list[HostTraffic]
    """Of each host that has counted it, in these attempts."""

    @property
    def tokens_per_s(self) -> float:
        return self.tokens_per_step / self.split.step_s if self.split.step_s else math.nan

    @property
    def sent_bytes(self) -> float:
        """Of a step and host, in the mean over hosts."""
        return self._bytes_per_step("sent")

    @property
    def received_bytes(self) -> float:
        return self._bytes_per_step("received")

    @property
    def predicted_bytes(self) -> float:
        """What a host must send in a step."""
        return self._bytes_per_step("predicted")

    @property
    def host_s_per_million_tokens(self) -> float:
        """Seconds of all hosts together, for a million target tokens."""
        return 1e6 * self.hosts / self.tokens_per_s if self.tokens_per_s else math.nan

    def cost_per_million_tokens(self, prices: CostSettings) -> float:
        """NaN: no price is set."""
        if not prices.host_per_hour:
            return math.nan
        return prices.host_per_hour * self.host_s_per_million_tokens / 3600

    def _bytes_per_step(self, way: str) -> float:
        own = [host.bytes_per_step[way] for host in self.traffic]
        return math.fsum(own) / len(own) if own else math.nan


def layouts_of(run: RunFacts) -> list[LayoutPace]:
    """Returns the layouts of all attempts that did steps which count, in the order of first use."""
    parts = run.step_parts
    numbers, tokens = run.steps["step"], run.steps["tokens"]
    found = []
    done = set(np.unique(parts.attempt).tolist())
    timed = [attempt for attempt in run.attempts if attempt.number in done]
    for (hosts, ranks), attempts in attempts_by_layout(timed).items():
        rows = _usual_rows(parts, [attempt.number for attempt in attempts])
        found.append(
            LayoutPace(
                hosts=hosts,
                ranks=ranks,
                attempts=[attempt.number for attempt in attempts],
                steps=len(rows),
                split=parts.mean(rows),
                tokens_per_step=float(tokens[np.isin(numbers, parts.step[rows])].mean()),
                traffic=run.traffic_in(attempts),
            )
        )
    return found


def rows_of(run: RunFacts, layout: LayoutPace) -> Array:
    """Returns the rows of `run.step_parts` over which the means of a layout are taken."""
    return _usual_rows(run.step_parts, layout.attempts)


def _usual_rows(parts: StepParts, attempts: Sequence[int]) -> Array:
    """Returns all rows of these attempts where none of them is usual."""
    own = np.isin(parts.attempt, attempts)
    is_usual = own & parts.usual
    return np.flatnonzero(is_usual if is_usual.any() else own)


def attempts_by_layout(attempts: Sequence[Attempt]) -> dict[tuple[int, int], list[Attempt]]:
    """Returns the attempts with as many hosts and ranks, in the order of first use."""
    found: dict[tuple[int, int], list[Attempt]] = {}
    for attempt in attempts:
        hosts = max(1, len(attempt.host_names))
        found.setdefault((hosts, attempt.ranks), []).append(attempt)
    return found


def longest_layout(layouts: Sequence[LayoutPace]) -> LayoutPace:
    """Returns the one with most steps, for headlines; of equals the later."""
    return max(reversed(layouts), key=lambda layout: layout.steps)


def why_this_layout(layout: LayoutPace, layouts: Sequence[LayoutPace]) -> str:
    """Returns why it stands for a run of several, to be put between commas."""
    if all(layout.steps > other.steps for other in layouts if other is not layout):
        return "with which most steps were done"
    return "the last of those with as many steps"


def layout_name(layout: LayoutPace, layouts: Sequence[LayoutPace]) -> str:
    """Returns "4 hosts", or "8 ranks on 4 hosts" where the hosts alone do not tell which it is."""
    hosts = count(layout.hosts, "host")
    if [each.hosts for each in layouts].count(layout.hosts) == 1:
        return hosts
    return f"{count(layout.ranks, 'rank')} on {hosts}"


def comparison_of(layouts: Sequence[LayoutPace], prices: CostSettings) -> str:
    """Returns a sentence that compares the largest layout with the fastest of the smaller ones;
    empty where there are no two with enough steps."""
    enough = [layout for layout in layouts if layout.steps >= ENOUGH_STEPS]
    if not enough:
        return ""
    larger = max(enough, key=_size)
    smaller = [layout for layout in enough if _size(layout) < _size(larger)]
    if not smaller:
        return ""
    fastest = max(smaller, key=lambda layout: layout.tokens_per_s)
    names = layout_name(larger, layouts), layout_name(fastest, layouts)
    return compared(larger, fastest, names, prices)


def compared(
    larger: LayoutPace, smaller: LayoutPace, names: tuple[str, str], prices: CostSettings
) -> str:
    """Returns what the larger layout has brought: speed, or only costs. `names`: of both."""
    this, that = names
    were = "was" if that.startswith("1 ") else "were"
    match _order(larger.tokens_per_s, smaller.tokens_per_s), _order(*_host_times(larger, smaller)):
        case -1, _:
            outcome = f"{this} are slower and dearer than {that} {were}"
        case 0, 0:
            outcome = f"{this} are as fast as {that} {were}, for the same money"
        case 0, _:
            outcome = f"{this} are no faster than {that} {were}, and dearer"
        case _, 1:
            outcome = f"{this} are faster but dearer than {that} {were}"
        case _, 0:
            outcome = f"{this} are faster than {that} {were}, for the same money"
        case _:
            outcome = f"{this} are faster and cheaper than {that} {were}"
    return f"With {this} {_paces(larger, smaller)}: {outcome} ({_prices(larger, smaller, prices)})."


def _size(layout: LayoutPace) -> tuple[int, int]:
    return layout.hosts, layout.ranks


def _host_times(larger: LayoutPace, smaller: LayoutPace) -> tuple[float, float]:
    return larger.host_s_per_million_tokens, smaller.host_s_per_million_tokens


def _order(first: float, second: float) -> int:
    """Returns 1 where the first is clearly larger, -1 where it is clearly smaller, else 0."""
    if abs(first - second) <= ABOUT_EQUAL * second:
        return 0
    return 1 if first > second else -1


def _paces(larger: LayoutPace, smaller: LayoutPace) -> str:
    if _order(larger.tokens_per_step, smaller.tokens_per_step) == 0:
        this, that = seconds(larger.split.step_s), seconds(smaller.split.step_s)
        return f"a step takes {this} instead of {that}"
    return (
        f"{larger.tokens_per_s:,.0f} target tokens are trained in a second instead of "
        f"{smaller.tokens_per_s:,.0f}"
    )


def _prices(larger: LayoutPace, smaller: LayoutPace, prices: CostSettings) -> str:
    what = "per million target tokens"
    if not prices.host_per_hour:
        this, that = map(seconds, _host_times(larger, smaller))
        return f"{this} against {that} of host time {what}"
    this_cost, that_cost = (layout.cost_per_million_tokens(prices) for layout in (larger, smaller))
    return f"{this_cost:.3g} against {that_cost:.3g} {prices.currency} {what}"
