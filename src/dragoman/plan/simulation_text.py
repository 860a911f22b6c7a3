"""A simulation for the terminal, in at most 80 columns."""

from textwrap import fill

from dragoman.console import duration
from dragoman.diagnosis.phrasing import percent
from dragoman.plan.simulation import Simulated, Simulation
from dragoman.plan.terminal import WIDTH, table_text
from dragoman.plan.words import short_money, short_name


def simulation_text(found: Simulation) -> str:
    has_cost = any(mode.cost is not None for mode in found.modes)
    header = ["mode", "step, s", "waits, s", "slowest, s", "effic., %", "run, h"]
    rows = [_row(mode, has_cost) for mode in found.modes if not mode.refused]
    if has_cost:
        header.append(found.currency)
    steps = f"{found.steps:,} steps" if found.steps else "an unknown number of steps"
    title = (
        f"{found.recipe} on {found.nodes:,} nodes, {found.workers:,} workers, {steps}. Simulated: "
        f"every figure follows from the file. A checkpoint after every "
        f"{duration(found.save_every_s)} of work.{_failures(found)}"
    )
    table = table_text(header, rows, "l" + "r" * (len(header) - 1))
    explained = (
        "waits: for the network, in a step. slowest: what a step waits for its slowest worker. "
        "effic.: of a node, as a share of one node alone. run: with failures, mean of 200 runs."
    )
    parts = [fill(title, WIDTH), table, fill(explained, WIDTH)]
    if found.note:
        parts.append(fill(found.note, WIDTH))
    return "\n\n".join(parts)


def _failures(found: Simulation) -> str:
    first = found.modes[0]
    if first.failures is None or first.goodput is None:
        return ""
    return (
        f" With {first.mode}, a run has {first.failures:,.1f} failures in the mean, and "
        f"{percent(first.goodput)} of its time is neither lost nor spent on restarts."
    )


def _row(mode: Simulated, has_cost: bool) -> tuple[str, ...]:
    return (
        short_name(mode.mode),
        f"{mode.step_s:,.3g}",
        f"{mode.waiting_s:,.3g}",
        f"{mode.straggling_s:.2g}",
        f"{100 * mode.efficiency:.2g}",
        "no end" if mode.hours is None else f"{mode.hours:,.0f}",
        *((short_money(mode.cost),) if has_cost else ()),
    )
