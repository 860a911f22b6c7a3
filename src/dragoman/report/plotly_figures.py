"""Plots come in, Plotly figures as JSON go out; the page gives text and grid their colors."""

import json
from collections.abc import Sequence
from html import escape
from itertools import groupby, pairwise
from typing import Any

from dragoman.diagnosis.findings import Health
from dragoman.diagnosis.phrasing import instant, seconds
from dragoman.report.document import (
    Chart,
    Gantt,
    GanttBar,
    GanttMark,
    Histogram,
    Line,
    Plot,
    StackedBars,
)

# Of Okabe and Ito's palette, told apart by most color-blind people; those that show on white and
# on black.
COLORS = ("#3a87c8", "#d9730d", "#1a9e77", "#b764a0", "#9a8a2c", "#7a6fd0", "#5f9ea0", "#c2514a")
CONTEXT_COLOR = "#8b949e"
HEALTH_COLORS: dict[Health, str] = {
    "good": "#1a9e77",
    "watch": "#d9a00d",
    "poor": "#c2514a",
    "open": "#8b949e",
    "fact": "#3a87c8",
}
MARKERS_UP_TO = 40
_MILLISECONDS = 1000

Figure = dict[str, Any]
_TIME_AXIS: Figure = {"type": "date", "title": {"text": "time (UTC)", "standoff": 8}}
_STEP_AXIS: Figure = {
    "title": {"text": "step", "standoff": 8},
    "unifiedhovertitle": {"text": "step %{x:,d}"},
    "tickformat": ",d",
    "rangemode": "tozero",
}


def figure_json(plot: Plot) -> str:
    """Safe inside a script element: without "<", nothing in it can end that."""
    text = json.dumps(figure_of(plot), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def figure_of(plot: Plot) -> Figure:
    match plot:
        case Chart():
            return _chart(plot)
        case StackedBars():
            return _stacked_bars(plot)
        case Histogram():
            return _histogram(plot)
        case Gantt():
            return _gantt(plot)


def _label(text: str) -> str:
    """Returns text for Plotly, which reads tags: what a file says is shown, never obeyed.

    Quotes stay: of HTML's names Plotly knows but a few, and would show &quot; as it stands.
    """
    return escape(text, quote=False)


def _layout(xaxis: Figure, yaxis: Figure, **others: Any) -> Figure:
    return {
        "xaxis": {"automargin": True, "showspikes": False, "zeroline": False} | xaxis,
        "yaxis": {
            "automargin": True,
            "separatethousands": True,
            "exponentformat": "e",
            "minexponent": 6,  # 12,000 tokens a second, not 1.2e+4
        }
        | yaxis,
        "font": {"size": 12},
        "legend": {
            "orientation": "h",
            "x": 0,
            "y": 1.02,
            "yanchor": "bottom",
            "traceorder": "normal",
        },
        "hoverlabel": {"namelength": -1},
        "margin": {"l": 48, "r": 12, "t": 12, "b": 44},
        **others,
    }


def _chart(chart: Chart) -> Figure:
    is_time = chart.axis == "time"
    drawn = list(zip(chart.lines, _colors(chart.lines), strict=True))
    traces: list[Figure] = []
    if chart.spread == "band":
        banded = [(line, color) for line, color in drawn if line.lows]
        # Where bands lie one over the other, all of them together are as dark as one alone.
        opacity = 0.25 / max(1, len(banded))
        traces += [_band(line, color, opacity, is_time) for line, color in banded]
    traces += [_trace(line, chart, color) for line, color in drawn]
    xaxis = {"time": _TIME_AXIS, "steps": _STEP_AXIS, "number": _number_axis(chart)}[chart.axis]
    if chart.axis_range:
        xaxis = xaxis | {"range": _x(chart.axis_range, is_time)}
    yaxis: Figure = {
        "title": {"text": _label(chart.value_title), "standoff": 12},
        "hoverformat": chart.number_format,
        "rangemode": "tozero" if chart.shows_zero else "normal",
    }
    if chart.is_logarithmic:
        yaxis |= {"type": "log", "dtick": 1}
    if chart.value_range:
        yaxis["range"] = list(chart.value_range)
    shows_legend = len(chart.lines) > 1
    layout = _layout(xaxis, yaxis, showlegend=shows_legend, hovermode="x unified")
    if chart.axis_range:
        # Labels come and go as the range moves on: Plotly would measure its margin again and again.
        layout["xaxis"]["automargin"] = False
        layout["margin"]["b"] = 64
    return {"data": traces, "layout": layout}


def _number_axis(chart: Chart) -> Figure:
    title = {"text": _label(chart.axis_title), "standoff": 8}
    hovered = {"text": f"{_label(chart.axis_title)}: %{{x:,}}"}
    scale = {"type": "log"} if chart.is_logarithmic else {"rangemode": "tozero"}
    return {"title": title, "unifiedhovertitle": hovered, "tickformat": ",", **scale}


def _colors(lines: Sequence[Line]) -> list[str]:
    colors, taken = [], 0
    for line in lines:
        if line.style == "context":
            colors.append(CONTEXT_COLOR)
        elif line.color is not None:
            colors.append(COLORS[line.color % len(COLORS)])
        else:
            colors.append(COLORS[taken % len(COLORS)])
            taken += 1
    return colors


def _trace(line: Line, chart: Chart, color: str) -> Figure:
    is_few = len(line.at) <= MARKERS_UP_TO and line.style == "line" and not chart.is_stacked
    trace: Figure = {
        "type": "scatter",
        "x": _x(line.at, chart.axis == "time"),
        "y": list(line.values),
        "name": _label(line.name),
        "mode": "lines+markers" if is_few else "lines",
        "line": {"color": color, "width": 2 if line.style == "line" else 1.5},
    }
    if line.style == "dashed":
        trace["line"] |= {"dash": "dash", "width": 2}
    if chart.is_stacked:
        trace |= {"stackgroup": "one", "line": {"color": color, "width": 0.5}}
    if line.lows and chart.spread == "error bars":
        trace["error_y"] = _error_bars(line, color)
    if line.lows:
        shown = chart.number_format
        spread = zip(line.lows, line.highs, strict=True)
        trace["customdata"] = [[low, high] for low, high in spread]
        trace["hovertemplate"] = (
            f"%{{y:{shown}}} (%{{customdata[0]:{shown}}} to %{{customdata[1]:{shown}}})"
        )
    return trace


def _error_bars(line: Line, color: str) -> Figure:
    def reach(ends: Sequence[float | None]) -> list[float]:
        pairs = zip(line.values, ends, strict=True)
        return [0.0 if value is None or end is None else abs(end - value) for value, end in pairs]

    return {
        "type": "data",
        "symmetric": False,
        "array": reach(line.highs),
        "arrayminus": reach(line.lows),
        "color": color,
        "thickness": 1.2,
        "width": 3,
    }


def _band(line: Line, color: str, opacity: float, is_time: bool) -> Figure:
    """What each point stands for, from its lowest to its highest, as an area behind the line."""
    x, y = [], []
    rows = zip(_x(line.at, is_time), line.lows, line.highs, strict=True)
    for is_known, stretch in groupby(rows, lambda row: None not in row):
        if is_known:
            own = list(stretch)
            x += [at for at, _, _ in own] + [at for at, _, _ in reversed(own)] + [None]
            y += [high for _, _, high in own] + [low for _, low, _ in reversed(own)] + [None]
    red, green, blue = bytes.fromhex(color[1:])
    return {
        "type": "scatter",
        "x": x,
        "y": y,
        "mode": "lines",
        "line": {"width": 0},
        "fill": "toself",
        "fillcolor": f"rgba({red}, {green}, {blue}, {opacity:.3f})",
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _x(at: Sequence[float], is_time: bool) -> list[float]:
    return [round(moment * _MILLISECONDS) for moment in at] if is_time else list(at)


def _stacked_bars(bars: StackedBars) -> Figure:
    rows = [_label(row) for row in bars.rows]
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "x": list(lengths),
            "y": rows,
            "name": _label(name),
            "marker": {"color": COLORS[place % len(COLORS)], "line": {"width": 0}},
            "hovertemplate": f"{_label(name)}: %{{x:{bars.number_format}}}<extra>%{{y}}</extra>",
        }
        for place, (name, lengths) in enumerate(bars.parts)
    ]
    xaxis = {"title": {"text": _label(bars.value_title), "standoff": 8}, "rangemode": "tozero"}
    yaxis = {"type": "category", "categoryarray": rows[::-1], "ticklabelstandoff": 6}
    layout = _layout(
        xaxis,
        yaxis,
        barmode="stack",
        bargap=0.3,
        showlegend=True,
        hovermode="closest",
        height=min(900, 150 + 30 * len(rows)),
    )
    return {"data": traces, "layout": layout}


def _histogram(histogram: Histogram) -> Figure:
    edges = histogram.edges
    bars = {
        "type": "bar",
        "x": [(low + high) / 2 for low, high in pairwise(edges)],
        "width": [high - low for low, high in pairwise(edges)],
        "y": list(histogram.counts),
        "marker": {"color": COLORS[0], "line": {"width": 0}},
        "hovertemplate": "%{y:,} steps of about %{x:.4g} s<extra></extra>",
    }
    marks: list[Figure] = [
        {
            "type": "scatter",
            "x": [where, where],
            "y": [0, max(histogram.counts, default=1)],
            "mode": "lines",
            "line": {"color": COLORS[1 + place], "width": 1.5, "dash": "dash"},
            "name": _label(f"{name} {seconds(where)}"),
            "hoverinfo": "skip",
        }
        for place, (name, where) in enumerate(histogram.marks)
    ]
    xaxis = {"title": {"text": _label(histogram.value_title), "standoff": 8}}
    yaxis = {"title": {"text": "steps", "standoff": 12}, "rangemode": "tozero"}
    layout = _layout(xaxis, yaxis, showlegend=True, bargap=0, hovermode="closest")
    return {"data": [bars | {"showlegend": False}, *marks], "layout": layout}


def _gantt(gantt: Gantt) -> Figure:
    rows = list(dict.fromkeys(bar.row for bar in gantt.bars))
    layout = _layout(
        _TIME_AXIS,
        {
            "type": "category",
            "categoryarray": [_label(row) for row in reversed(rows)],
            "range": [-0.7, len(rows) - 0.3],
        },
        showlegend=bool(gantt.marks),
        hovermode="closest",
        height=min(520, 110 + 34 * len(rows)),
    )
    faults = [_faults(gantt.marks)] if gantt.marks else []
    return {"data": [*map(_bar, gantt.bars), *faults], "layout": layout}


def _bar(bar: GanttBar) -> Figure:
    return {
        "type": "scatter",
        "x": _x([bar.begin_at, bar.end_at], is_time=True),
        "y": [_label(bar.row)] * 2,
        "mode": "lines",
        "line": {"color": HEALTH_COLORS[bar.health], "width": 12},
        "text": [_label(bar.text)] * 2,
        "hovertemplate": "%{text}<extra></extra>",
        "showlegend": False,
    }


def _faults(marks: Sequence[GanttMark]) -> Figure:
    return {
        "type": "scatter",
        "x": _x([mark.at for mark in marks], is_time=True),
        "y": [_label(mark.row) for mark in marks],
        "mode": "markers",
        "name": "fault",
        "marker": {"symbol": "x", "size": 11, "color": HEALTH_COLORS["poor"]},
        "text": [_label(f"{mark.text} ({instant(mark.at)})") for mark in marks],
        "hovertemplate": "%{text}<extra></extra>",
    }
