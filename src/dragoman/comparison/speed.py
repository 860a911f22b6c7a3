"""How long a step took in each run, part by part, as the lowest rank saw it."""

import numpy as np

from dragoman.comparison.rows import ComparedRun, Group, Row, measured
from dragoman.telemetry.read.tables import Array, Table

ABOUT_AS_MANY = 0.02


def speed_of(a: ComparedRun, b: ComparedRun) -> Group:
    one, other = a.facts.steps, b.facts.steps
    for run in (a, b):
        if not len(run.facts.steps):
            why = f"Not known, because {run.facts.record.root} has recorded no step."
            return Group("Speed", [], [why])
    parts = dict.fromkeys([*one.groups.get("parts_s", {}), *other.groups.get("parts_s", {})])
    step = measured("step", _mean(one["step_s"]), _mean(other["step_s"]), "s")
    rows = [
        step,
        *(measured(f"  {part}", _part(one, part), _part(other, part), "s") for part in parts),
        measured("median step", _median(one), _median(other), "s"),
        measured("tokens a step", _mean(one["tokens"]), _mean(other["tokens"]), "tokens"),
        measured("tokens a second", _tokens_per_s(one), _tokens_per_s(other), "tokens"),
        measured("sent a step", _sent(one), _sent(other), "bytes"),
    ]
    known = [each for each in rows if each.a is not None or each.b is not None]
    return Group("Speed", known, _in_words(rows, parts_of=rows[1 : 1 + len(parts)]))


def _in_words(rows: list[Row], parts_of: list[Row]) -> list[str]:
    per_token = next(each for each in rows if each.what == "tokens a second")
    if per_token.ratio is None:
        return []
    pace = f"{_pace(per_token.ratio)} tokens a second"
    changes = [
        (each.b - each.a, each.what.strip())
        for each in parts_of
        if isinstance(each.a, float) and isinstance(each.b, float)
    ]
    if not changes:
        return [f"{pace}."]
    change_s, part = max(changes, key=lambda change: abs(change[0]))
    direction = "longer" if change_s > 0 else "shorter"
    return [f"{pace}. What changed most in a step is {part}: {abs(change_s):.3g} s {direction}."]


def _pace(ratio: float) -> str:
    if abs(ratio - 1) < ABOUT_AS_MANY:
        return "Both process about as many"
    if ratio >= 2:
        return f"The second processes {ratio:.1f} times as many"
    more = "more" if ratio > 1 else "fewer"
    return f"The second processes {100 * abs(ratio - 1):.0f} % {more}"


def _mean(values: Array) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None


def _median(steps: Table) -> float | None:
    known = steps["step_s"][np.isfinite(steps["step_s"])]
    return float(np.median(known)) if len(known) else None


def _part(steps: Table, part: str) -> float | None:
    """Where a step has none of it, it took no time; None: no step has it."""
    values = steps.groups.get("parts_s", {}).get(part)
    if values is None or not np.isfinite(values).any():
        return None
    return float(np.nansum(values)) / len(steps)


def _tokens_per_s(steps: Table) -> float | None:
    total_s = float(np.nansum(steps["step_s"]))
    return float(np.nansum(steps["tokens"])) / total_s if total_s > 0 else None


def _sent(steps: Table) -> float | None:
    values = steps.groups.get("traffic_bytes", {}).get("sent")
    return None if values is None else _mean(values)
