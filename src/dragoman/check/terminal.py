"""A check in a terminal: a result comes in, lines go out, with colors where there are any."""

import textwrap
from collections.abc import Iterator, Sequence

from rich.text import Text

from dragoman.check.matrix import (
    HOST_HEADER,
    MOST_HOSTS,
    Cell,
    by_severity,
    host_row,
    matrix_of,
    slowest_ways,
    summary_of,
)
from dragoman.check.ports import Rates, rates_of
from dragoman.check.result import CheckResult, Finding
from dragoman.diagnosis.phrasing import bit_rate, seconds

SIGNS = {"good": "✓", "warning": "!", "unfit": "✗"}
STYLES = {"good": "green", "warning": "yellow", "unfit": "bold red"}
LEAST_WIDTH, MOST_WIDTH = 60, 110
MOST_LETTERS = 22
"""Of a device's name, which is the longest cell of its row."""
ROOMY_HOSTS = 10
"""Of so many hosts a matrix has room for three digits and a mark in 80 columns."""


def lines_of(result: CheckResult, width: int = 80) -> Iterator[Text]:
    """Yields the verdicts, the hosts, the pairs and a summary; the verdicts are what counts, and so
    stand first, and in one word last."""
    width = min(max(width, LEAST_WIDTH), MOST_WIDTH)
    label = max(len(finding.subject) for finding in result.findings) + 2
    for finding in by_severity(result.findings):
        yield from _verdict_lines(finding, label, width)
    yield Text()
    yield from _host_lines(result, width)
    if rates := rates_of(result.transfers):
        yield Text()
        yield from _pair_lines(rates, [host.name for host in result.hosts])
        trips = sorted(t.round_trip_s for t in result.transfers)
        yield Text(f"Round trips: {seconds(trips[0])} to {seconds(trips[-1])}.", style="dim")
    if result.collective:
        all_reduce = result.collective
        fastest = seconds(min(all_reduce.seconds))
        yield Text(
            f"All-reduce of {all_reduce.elements:,} values over {all_reduce.ranks} workers "
            f"({all_reduce.backend}): {fastest}."
        )
    yield Text()
    yield Text(summary_of(result), style="bold" if result.is_fit else STYLES["unfit"])


def _verdict_lines(finding: Finding, label: int, width: int) -> Iterator[Text]:
    indent = 2 + label
    wrapped = textwrap.wrap(finding.sentence, width - indent, break_on_hyphens=False) or [""]
    first = Text(f"{SIGNS[finding.verdict]} ", style=STYLES[finding.verdict])
    first.append(f"{finding.subject:<{label}}", style="bold")
    first.append(wrapped[0], style="")
    yield first
    for line in wrapped[1:]:
        yield Text(" " * indent + line)


def _host_lines(result: CheckResult, width: int) -> Iterator[Text]:
    rows = [HOST_HEADER, *(host_row(host) for host in result.hosts)]
    rows = [(*row[:3], row[3][:MOST_LETTERS].strip(), *row[4:]) for row in rows]
    hidden = set[int]()
    # Names and figures count; where they do not fit, address and device are left out.
    for column in (1, 3):
        if _width(rows, hidden) > width:
            hidden.add(column)
    widths = [max(len(row[column]) for row in rows) for column in range(len(HOST_HEADER))]
    for number, row in enumerate(rows):
        cells = [
            cell.rjust(widths[c]) if c > 3 or c == 2 else cell.ljust(widths[c])
            for c, cell in enumerate(row)
            if c not in hidden
        ]
        yield Text("  ".join(cells).rstrip(), style="bold" if number == 0 else "")


def _width(rows: Sequence[Sequence[str]], hidden: set[int]) -> int:
    shown = [c for c in range(len(HOST_HEADER)) if c not in hidden]
    return sum(max(len(row[c]) for row in rows) + 2 for c in shown) - 2


def _pair_lines(rates: Rates, order: Sequence[str]) -> Iterator[Text]:
    hosts = {name for pair in rates for name in pair}
    if len(hosts) > MOST_HOSTS:
        yield Text("The slowest of all pairs:", style="bold")
        for sender, receiver, rate in slowest_ways(rates):
            yield Text(f"  {sender} to {receiver}: {bit_rate(rate)}")
        return
    is_roomy = len(hosts) <= ROOMY_HOSTS
    matrix = matrix_of(rates, order, digits=3 if is_roomy else 2)
    cell_width = 7 if is_roomy else 4
    names = [name if len(name) <= 12 else f"{name[:11]}…" for name in matrix.hosts]
    yield Text(f"Bandwidth in {matrix.unit}, from row to column:", style="bold")
    numbers = is_roomy and all(len(name) < cell_width for name in names)
    heads = names if numbers else [str(number) for number in range(1, len(names) + 1)]
    side = names if numbers else [f"{n:>2} {name}" for n, name in enumerate(names, 1)]
    label = max(map(len, side))
    yield Text(" " * label + "".join(head.rjust(cell_width) for head in heads), style="dim")
    for name, row in zip(side, matrix.rows, strict=True):
        line = Text(f"{name:<{label}}")
        for cell in row:
            mark = cell.mark.ljust(2) if is_roomy else ""
            line.append((cell.text + mark).rjust(cell_width), style=_style(cell))
        yield line
    if is_roomy and any(cell.mark for row in matrix.rows for cell in row):
        yield Text("! and !!: below 65 % and 50 % of the fastest.", style="dim")


def _style(cell: Cell) -> str:
    if cell.share is None:
        return "dim"
    return STYLES[{"": "good", "!": "warning", "!!": "unfit"}[cell.mark]]
