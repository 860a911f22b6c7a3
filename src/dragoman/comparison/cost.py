"""What each run took of time and money."""

from dragoman.comparison.rows import ComparedRun, Group, measured, row
from dragoman.diagnosis.speed.time_spent import cost_of as money_of
from dragoman.diagnosis.speed.time_spent import time_spent


def cost_of(a: ComparedRun, b: ComparedRun) -> Group:
    first, second = time_spent(a.facts.attempts), time_spent(b.facts.attempts)
    rows = [
        measured("wall time", first.wall_s, second.wall_s, "s"),
        row("  steps done again", first.repeated_s, second.repeated_s, "s"),
        row("  down between attempts", first.down_s, second.down_s, "s"),
        measured("steps that count", len(a.facts.steps), len(b.facts.steps), "steps"),
        measured("host hours", _paid(a, 1.0), _paid(b, 1.0), "h"),
    ]
    prices, others = a.facts.config.cost, b.facts.config.cost
    if not prices.host_per_hour or not others.host_per_hour:
        why = "Not known in money, because cost.host_per_hour is not set in both runs."
        return Group("Time and cost", rows, [why])
    if prices.currency != others.currency:
        why = f"Not compared in money, because one is in {prices.currency}"
        return Group("Time and cost", rows, [f"{why} and the other in {others.currency}."])
    rows.append(
        measured(
            "cost", _paid(a, prices.host_per_hour), _paid(b, others.host_per_hour), prices.currency
        )
    )
    return Group("Time and cost", rows, [])


def _paid(run: ComparedRun, host_per_hour: float) -> float:
    return money_of(run.facts.attempts, host_per_hour)
