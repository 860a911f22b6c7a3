"""A plan as one page in the look of the report: it needs no network and no server."""

from collections.abc import Sequence
from html import escape

from dragoman.diagnosis.findings import Health
from dragoman.diagnosis.phrasing import money, percent, seconds, size
from dragoman.plan.content import Figure, Mode, Plan
from dragoman.plan.words import (
    hours_text,
    input_text,
    known_from,
    memory_text,
    mode_remark,
    modes_of_links,
    short_name,
    summary_lines,
    with_interval,
)
from dragoman.report.document import Appendix, Chart, Line, Paragraph, TextTable
from dragoman.report.webpage import appendix_html, code_html, page_html

MOST_LINES = 6
"""Of a chart, each in a color of its own."""
NETWORK_WATCH, NETWORK_POOR = 0.1, 0.25
"""Shares of a step that it waits, from which the network needs attention and holds it back."""


def to_html(plan: Plan) -> str:
    step, run, _ = summary_lines(plan)
    title = f"Plan of {plan.recipe}"
    head = f"""<h1>{escape(title)}</h1>
<p>{escape(f"{plan.parameters:,} parameters on {plan.hosts} host(s). {plan.origin}")}</p>
<p class="lead">{escape(f"{step} {run}")}</p>"""
    sections = [appendix_html(section) for section in _sections(plan)]
    return page_html(title, head, "\n".join([_cards(plan), _to_do(plan), *sections]))


def _cards(plan: Plan) -> str:
    own = plan.own
    share = (own.step_s.value - own.compute_s.value) / own.step_s.value
    network: Health = (
        "poor" if share > NETWORK_POOR else "watch" if share > NETWORK_WATCH else "good"
    )
    cards: list[tuple[str, str, Health, str]] = [
        ("A step", seconds(own.step_s.value), "fact", _spread(own.step_s)),
        ("Waiting", percent(max(0.0, share)), network, f"{size(own.bytes_per_step)} a host"),
        (
            "The run",
            hours_text(own.hours),
            "fact",
            f"{own.hours.low:,.1f} to {own.hours.high:,.1f} h" if own.hours else "not known",
        ),
        (
            "Cost",
            money(own.cost.value, plan.currency) if own.cost else "not known",
            "poor" if plan.exceeds_budget else "fact",
            f"budget {money(plan.budget, plan.currency)}" if plan.budget else "no budget is set",
        ),
        ("Memory", *_memory_card(plan)),
        (
            "Known",
            "measured" if plan.is_measured else "assumed",
            "good" if plan.is_measured else "watch",
            "beside each figure",
        ),
    ]
    items = "\n".join(
        f'<li><span class="card {health}"><span class="short">{escape(name)}</span>'
        f'<span class="verdict">{escape(verdict)}</span>'
        f'<span class="how">{escape(how)}</span></span></li>'
        for name, verdict, health, how in cards
    )
    return f'<ol class="cards">{items}</ol>'


def _memory_card(plan: Plan) -> tuple[str, Health, str]:
    memory = plan.memory
    needed = memory.state_bytes + memory.activation_bytes
    if memory.device_bytes is None:
        return size(needed), "open", "of a device's, which is not known"
    return size(needed), "good" if memory.is_enough else "poor", f"of {size(memory.device_bytes)}"


def _spread(figure: Figure) -> str:
    return f"{seconds(figure.low)} to {seconds(figure.high)}, {known_from(figure)}"


def _to_do(plan: Plan) -> str:
    advice = plan.recommendation
    gains = "".join(f"<li>{escape(gain.sentence)}</li>" for gain in plan.gains)
    return (
        f'<div class="todo"><h2>Recommended: {escape(advice.sentence)}</h2>'
        f"<p>{escape(advice.reason)}</p>{code_html(advice.recipe, is_recipe=True)}"
        f"<p>What would change it:</p><ul>{gains}</ul></div>"
    )


def _sections(plan: Plan) -> list[Appendix]:
    return [
        Appendix("Ways to synchronize", [_modes(plan.modes, plan.currency)]),
        Appendix("Hosts", [*_nodes(plan)]),
        *([Appendix("Links", [_links(plan)])] if plan.links else []),
        Appendix("Learning rate", _learning_rate(plan)),
        Appendix("Memory", [Paragraph(f"A worker needs {memory_text(plan.memory)}")]),
        Appendix("What it starts from", [_inputs(plan)]),
    ]


def _modes(modes: Sequence[Mode], currency: str) -> TextTable:
    header = (
        *("mode", "", "sent, MB a step", "computing", "waiting", "step", "steps", "run", "cost"),
        "known",
    )
    rows = [
        (
            short_name(mode.name),
            mode_remark(mode),
            f"{mode.bytes_per_step / 1e6:,.1f}",
            with_interval(mode.compute_s),
            seconds(mode.exposed_s.value + mode.slowed_s.value),
            with_interval(mode.step_s),
            f"{mode.steps:,}" if mode.steps else "-",
            hours_text(mode.hours),
            money(mode.cost.value, currency) if mode.cost else "-",
            known_from(mode.step_s),
        )
        for mode in modes
    ]
    return TextTable(header, rows, "llrrrrrrrl")


def _nodes(plan: Plan) -> list[Chart | TextTable | Paragraph]:
    at = [point.nodes for point in plan.nodes]
    speeds = [point.tokens_per_s for point in plan.nodes]
    lows = [plan.tokens_per_update / point.step_s.high for point in plan.nodes]
    highs = [plan.tokens_per_update / point.step_s.low for point in plan.nodes]
    ideal = [speeds[0] * count / at[0] for count in at]
    chart = Chart(
        f"Target tokens a second by hosts, {plan.own.name}",
        "target tokens/s",
        ",.0f",
        [
            Line("forecast", at, speeds, lows, highs),
            Line("if nothing had to be sent", at, ideal, style="dashed"),
        ],
        axis="number",
        axis_title="hosts",
        spread="band",
    )
    rows = [
        (
            str(point.nodes),
            with_interval(point.step_s),
            percent(point.efficiency),
            "-" if point.hours is None else f"{point.hours:,.1f} h",
            "-" if point.cost is None else money(point.cost, plan.currency),
            point.note,
        )
        for point in plan.nodes
    ]
    table = TextTable(("hosts", "step", "efficiency", "run", "cost", ""), rows, "rrrrrl")
    return [chart, table]


def _links(plan: Plan) -> Chart:
    at = [point.bits_per_s / 1e6 for point in plan.links]
    names = modes_of_links(plan, MOST_LINES)
    return Chart(
        "Seconds of a step by the rate of the links",
        "s",
        ".3g",
        [Line(name, at, [point.step_s[name] for point in plan.links]) for name in names],
        axis="number",
        axis_title="link, Mbit/s",
        is_logarithmic=True,
    )


def _learning_rate(plan: Plan) -> list[Chart | Paragraph]:
    rate = plan.learning_rate
    chart = Chart(
        "The learning rate that will be run",
        "learning rate",
        ".3g",
        [Line("rate", rate.steps, rate.rates)],
    )
    return [*(Paragraph(sentence) for sentence in rate.sentences), chart]


def _inputs(plan: Plan) -> TextTable:
    rows = [
        (given.name, input_text(given), known_from(given.figure), given.figure.basis)
        for given in plan.inputs
    ]
    return TextTable(("", "figure", "known", "from"), rows, "llll")
