"""A plan for the terminal: what matters most first, in at most 80 columns."""

from collections.abc import Sequence
from io import StringIO
from textwrap import wrap
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from dragoman.diagnosis.phrasing import bit_rate, count, money, percent, seconds, size
from dragoman.plan.content import Mode, Plan
from dragoman.plan.learning_rate import sparkline
from dragoman.plan.words import (
    UNKNOWN_COST,
    cost_text,
    end_text,
    hours_text,
    input_text,
    known_from,
    memory_text,
    modes_of_links,
    short_money,
    short_name,
    steps_text,
    with_interval,
)

WIDTH = 80
LINKS_SHOWN = (1e7, 1e8, 1e9, 1e10, 2.5e10, 1e11)
MOST_MODES_OF_LINKS = 4


def terminal_text(plan: Plan) -> str:
    sections = [
        _head(plan),
        _recommendation(plan),
        _modes(plan),
        _nodes(plan),
        *([_links(plan)] if plan.links else []),
        _gains(plan),
        _memory(plan),
        _learning_rate(plan),
        _inputs(plan),
    ]
    return "\n\n".join(sections)


def _head(plan: Plan) -> str:
    own, currency = plan.own, plan.currency
    workers = f" of {plan.workers} workers" if plan.workers > 1 else ""
    rows = [
        ("step", with_interval(own.step_s), known_from(own.step_s)),
        ("  computing", with_interval(own.compute_s), known_from(own.compute_s)),
    ]
    if plan.hosts * plan.workers > 1:
        rows += [
            ("  exposed communication", with_interval(own.exposed_s), known_from(own.exposed_s)),
            *([_slowed(own)] if own.slowed_s.value else []),
            ("sent by a host, a step", size(own.bytes_per_step), "computed"),
        ]
    if own.hours:
        spread = f"{own.hours.low:,.1f} to {own.hours.high:,.1f} h"
        rows.append(("run", f"{hours_text(own.hours)} ({spread})", "evaluations: assumed"))
    if own.cost:
        over = " ABOVE BUDGET" if plan.exceeds_budget else ""
        rows.append(("cost", f"{cost_text(own.cost, currency)}{over}", "from prices"))
    elif plan.budget:
        rows.append(("cost", UNKNOWN_COST, "not known"))
    if not plan.memory.is_enough:
        needed = size(plan.memory.state_bytes + plan.memory.activation_bytes)
        has = size(plan.memory.device_bytes or 0.0)
        known = "measured" if plan.memory.is_measured else "assumed"
        rows.append(("memory", f"{needed} of {has} DOES NOT FIT", known))
    updates = f"{steps_text(plan)} of {plan.tokens_per_update:,} target tokens{end_text(plan)}"
    title = (
        f"{plan.recipe}: {plan.parameters:,} parameters, {updates},\n"
        f"on {plan.hosts} host(s){workers}, {own.name}. {plan.origin}"
    )
    return f"{_wrapped(title)}\n{table_text(('', '', 'known'), rows, 'lll')}"


def _slowed(own: Mode) -> tuple[str, str, str]:
    return "  slowed by communication", with_interval(own.slowed_s), known_from(own.slowed_s)


def _recommendation(plan: Plan) -> str:
    advice = plan.recommendation
    lines = [_wrapped(f"Recommended: {advice.sentence} {advice.reason}")]
    lines += [f"    {line}" for line in advice.recipe.splitlines()]
    return "\n".join(lines)


def _modes(plan: Plan) -> str:
    has_cost = any(mode.cost for mode in plan.modes)
    has_steps = plan.is_ended_by_the_clock
    header = ["", "mode", "MB a step", "waits", "step", *(["steps"] * has_steps), "run"]
    rows = [_mode_row(mode, has_cost, has_steps) for mode in plan.modes]
    if has_cost:
        header.append(plan.currency)
    table = table_text(header, rows, "llrrrr" + "r" * (has_cost + has_steps))
    return _titled("Ways to synchronize (* yours, > recommended, - refused)", table)


def _mode_row(mode: Mode, has_cost: bool, has_steps: bool) -> tuple[str, ...]:
    waits = mode.exposed_s.value + mode.slowed_s.value
    cost = (short_money(mode.cost.value if mode.cost else None),) if has_cost else ()
    return (
        _mark(mode),
        short_name(mode.name),
        f"{mode.bytes_per_step / 1e6:,.1f}",
        seconds(waits),
        seconds(mode.step_s.value),
        *([f"{mode.steps or 0:,}"] if has_steps else []),
        hours_text(mode.hours),
        *cost,
    )


def _mark(mode: Mode) -> str:
    if mode.refused:
        return "-"
    return ("*" if mode.is_own else "") + (">" if mode.is_recommended else "")


def _nodes(plan: Plan) -> str:
    has_cost = any(point.cost is not None for point in plan.nodes)
    rows = [
        (
            f"{point.nodes}{' *' if point.nodes == plan.hosts else ''}",
            seconds(point.step_s.value),
            f"{point.tokens_per_s:,.0f}",
            percent(point.efficiency),
            "-" if point.hours is None else f"{point.hours:,.1f} h",
            *([money(point.cost or 0.0, plan.currency)] if has_cost else []),
        )
        for point in plan.nodes
    ]
    header = ("hosts", "step", "tokens/s", "efficiency", "run", *(["cost"] if has_cost else []))
    table = table_text(header, rows, "lrrrr" + "r" * has_cost)
    notes = [point for point in plan.nodes if point.note]
    note = _wrapped(f"From {count(notes[0].nodes, 'host')} on: {notes[0].note}.") if notes else ""
    return _titled(f"Hosts, with {plan.own.name} (* yours)", "\n".join(filter(None, [table, note])))


def _links(plan: Plan) -> str:
    names = modes_of_links(plan, MOST_MODES_OF_LINKS)
    rows = [
        (
            bit_rate(point.bits_per_s / 8),
            *(seconds(point.step_s[name]) for name in names),
        )
        for point in plan.links
        if point.bits_per_s in LINKS_SHOWN
    ]
    short = [short_name(name) for name in names]
    return _titled(
        "A step on other links", table_text(("link", *short), rows, "l" + "r" * len(names))
    )


def _gains(plan: Plan) -> str:
    lines = "\n".join(_wrapped(f"- {gain.sentence}", "  ") for gain in plan.gains)
    return _titled("What would change it", lines)


def _memory(plan: Plan) -> str:
    return _titled("Memory of a worker", _wrapped(memory_text(plan.memory)))


def _learning_rate(plan: Plan) -> str:
    rate = plan.learning_rate
    drawn = sparkline(rate.rates, 60)
    ends = f"step 1{f'{rate.steps[-1]:,}':>56}"
    return _titled("Learning rate", "\n".join([drawn, ends, _wrapped(" ".join(rate.sentences))]))


def _inputs(plan: Plan) -> str:
    rows = [
        (given.name, input_text(given), known_from(given.figure), _basis(given.figure.basis))
        for given in plan.inputs
    ]
    return _titled("What it starts from", table_text(("", "", "known", "from"), rows, "llll"))


def _basis(text: str) -> str:
    return text.removeprefix("assumed: ")


def _titled(title: str, text: str) -> str:
    return f"{title}\n{text}"


def _wrapped(text: str, indent: str = "") -> str:
    parts = (wrap(line, WIDTH, subsequent_indent=indent) for line in text.splitlines())
    return "\n".join(line for part in parts for line in part)


def table_text(header: Sequence[str], rows: Sequence[Sequence[str]], alignment: str) -> str:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for place, (name, align) in enumerate(zip(header, alignment, strict=True)):
        is_number = align == "r"
        justify: Literal["left", "right"] = "right" if is_number else "left"
        table.add_column(name, justify=justify, no_wrap=is_number or not place)
    for row in rows:
        table.add_row(*row)
    out = StringIO()
    Console(file=out, width=WIDTH, color_system=None, markup=False, highlight=False).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines() if line.strip())
