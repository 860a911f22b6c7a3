"""What more training takes, in tokens, seconds and money."""

import math
from dataclasses import dataclass

from dragoman.diagnosis.run.facts import RunFacts


@dataclass(frozen=True)
class Pace:
    tokens_per_step: float
    step_s: float
    """Of the newest quarter of the steps, with the evaluations among them; NaN: not known."""
    hosts: int
    host_per_hour: float
    """The price of one."""

    def seconds(self, steps: float) -> float | None:
        """Returns None where no step has been timed."""
        return steps * self.step_s if math.isfinite(self.step_s) else None

    def cost(self, steps: float) -> float | None:
        """Returns None without a price, or where the number of hosts is not known."""
        price = self.host_per_hour * self.hosts * steps * self.step_s / 3600
        return price if price > 0 and math.isfinite(price) else None


def pace_of(run: RunFacts) -> Pace:
    config, steps = run.config, run.steps
    hosts = len(run.attempts[-1].host_names) if run.attempts else 0
    price = config.cost.host_per_hour
    if not len(steps):
        return Pace(float(config.training.tokens_per_update), math.nan, hosts, price)
    newest = slice(len(steps) * 3 // 4, None)
    since = steps["step"][newest][0]
    evaluating_s = math.fsum(e.seconds for e in run.evaluations if e.step >= since)
    step_s = (float(steps["step_s"][newest].sum()) + evaluating_s) / len(steps["step"][newest])
    return Pace(float(steps["tokens"].mean()), step_s, hosts, price)


def round_below(steps: float) -> int:
    """Returns the largest of 1, 2, 5, 10, 20, 50, ... that is not above `steps`."""
    if steps < 1:
        return 1
    power = 10 ** math.floor(math.log10(steps))
    return int(max(digit * power for digit in (1, 2, 5) if digit * power <= steps))
