"""What more training takes and brings, in steps, hours, money, loss and BLEU: figures and words."""

import math
from dataclasses import dataclass

from dragoman.config import Config
from dragoman.diagnosis.findings import Figure
from dragoman.diagnosis.learning.convergence import NEXT_SHARE, Outlook
from dragoman.diagnosis.learning.power_law import Estimate
from dragoman.diagnosis.phrasing import count, wall_time
from dragoman.diagnosis.run.facts import RunFacts

_OF_NEXT = "the next 25 % of tokens"


@dataclass(frozen=True)
class Pace:
    """Of the newest quarter of the steps, with the evaluations among them."""

    tokens_per_step: float
    step_s: float
    hosts: int

    def seconds(self, steps: float) -> float:
        return steps * self.step_s


def pace_of(run: RunFacts, config: Config) -> Pace:
    hosts = len(run.attempts[-1].host_names) if run.attempts else 0
    steps = run.steps
    if not len(steps):
        return Pace(float(config.training.tokens_per_update), math.nan, hosts)
    newest = slice(len(steps) * 3 // 4, None)
    since = steps["step"][newest][0]
    evaluating_s = math.fsum(e.seconds for e in run.evaluations if e.step >= since)
    step_s = (float(steps["step_s"][newest].sum()) + evaluating_s) / len(steps["step"][newest])
    return Pace(float(steps["tokens"].mean()), step_s, hosts)


def forecast_figures(outlook: Outlook, pace: Pace, config: Config, last_step: int) -> list[Figure]:
    steps = NEXT_SHARE * last_step
    round_steps = round_below(steps)
    of_round = outlook.gain(round_steps / last_step) if last_step else outlook.gain()
    figures = [
        _figure("expected gain in loss", outlook.gain(), "nats", _OF_NEXT),
        _figure("expected gain in BLEU", outlook.bleu_gain(), "BLEU", _OF_NEXT),
        Figure("tokens for it", steps * pace.tokens_per_step, "tokens", note=_OF_NEXT),
        Figure("steps for it", round(steps), "steps", note=_OF_NEXT),
        Figure("time for it", _known(pace.seconds(steps)), "s", note=_OF_NEXT),
        Figure("cost of it", cost_of(pace, config, steps), config.cost.currency, note=_OF_NEXT),
        _figure(f"expected gain of the next {round_steps:,} steps", of_round, "nats"),
        _figure("change at the end, per 25 % of tokens", outlook.trend, "nats"),
        Figure("exponent of the power law", outlook.fit.exponent, ""),
        Figure("noise of an evaluation", outlook.fit.noise, "nats"),
        Figure("evaluations used", outlook.fit.points, ""),
    ]
    return [figure for figure in figures if figure.value is not None]


def forecast_words(
    outlook: Outlook, pace: Pace, config: Config, last_step: int, is_schedule_done: bool
) -> str:
    """`is_schedule_done`: the rate has come to its end, and only a longer schedule brings more."""
    steps = NEXT_SHARE * last_step
    effort = [count(round(steps), "step")]
    if math.isfinite(pace.step_s):
        effort.append(wall_time(pace.seconds(steps)))
    if (cost := cost_of(pace, config, steps)) is not None:
        effort.append(f"{cost:,.2f} {config.cost.currency}")
    what = "A schedule longer by" if is_schedule_done else "The next"
    is_are = "is" if is_schedule_done else "are"
    gain, bleu = outlook.gain(), outlook.bleu_gain()
    of_bleu = f" and to bring {_range(bleu, 1)} BLEU" if bleu else ""
    round_steps = round_below(steps)
    of_round = ""
    if last_step and not is_schedule_done:
        of_round = (
            f"; the next {round_steps:,} steps, {outlook.gain(round_steps / last_step).value:.3f}"
        )
    return (
        f"{what} 25 % of tokens ({', '.join(effort)}) {is_are} expected to lower the validation "
        f"loss by {_range(gain, 3)} nats{of_bleu}{of_round} "
        f"(power law through the {outlook.fit.points} newest evaluations)."
    )


def _range(estimate: Estimate, digits: int) -> str:
    """0.017 (0.013 to 0.022)"""
    value, low, high = (f"{each:.{digits}f}" for each in estimate)
    return f"{value} ({low} to {high})"


def cost_of(pace: Pace, config: Config, steps: float) -> float | None:
    """None: no price is given, or nobody knows how many hosts there were."""
    price = config.cost.host_per_hour * pace.hosts * pace.seconds(steps) / 3600
    return price if price > 0 and math.isfinite(price) else None


def round_below(steps: float) -> int:
    """The largest of 1, 2, 5, 10, 20, 50, ... that is not more."""
    if steps < 1:
        return 1
    power = 10 ** math.floor(math.log10(steps))
    return int(max(digit * power for digit in (1, 2, 5) if digit * power <= steps))


def _figure(name: str, estimate: Estimate | None, unit: str, note: str = "") -> Figure:
    if estimate is None:
        return Figure(name, None, unit)
    return Figure(name, estimate.value, unit, estimate.low, estimate.high, note)


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
