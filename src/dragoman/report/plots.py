"""Plotly figures of charts, as JSON for the page. Colors of text and grid are left to the page."""

import html

import plotly.graph_objects as go

from dragoman.report.document import Chart, Line

# Of Okabe and Ito's palette, told apart by most color-blind people; those that show on white and
# on black.
COLORS = ("#3a87c8", "#d9730d", "#1a9e77", "#b764a0", "#9a8a2c", "#7a6fd0")
CONTEXT_COLOR = "#8b949e"
MARKERS_UP_TO = 40


def figure_json(chart: Chart) -> str:
    """Safe inside a script element: without "<", nothing in it can end that."""
    front = [line for line in chart.lines if not line.is_context]
    colors = {line.name: COLORS[place % len(COLORS)] for place, line in enumerate(front)}
    figure = go.Figure(
        data=[_trace(line, chart, colors.get(line.name, CONTEXT_COLOR)) for line in chart.lines],
        layout={
            # Plotly's default template is 6 kB a figure and paints a background of its own.
            "template": "none",
            "xaxis": {
                "title": {"text": "step", "standoff": 8},
                "unifiedhovertitle": {"text": "step %{x:,d}"},
                "tickformat": ",d",
                "rangemode": "tozero",
                # Drawn with a broad white border on a page that is dark.
                "showspikes": False,
            },
            "yaxis": {
                "title": {"text": html.escape(chart.value_title), "standoff": 12},
                "automargin": True,
                "separatethousands": True,
                "exponentformat": "e",
                "minexponent": 6,  # 12,000 tokens a second, not 1.2e+4
                "hoverformat": chart.number_format,
                "rangemode": "tozero" if chart.shows_zero else "normal",
                "range": [0, 100] if chart.is_stacked else None,
            },
            "font": {"size": 12},
            "legend": {
                "orientation": "h",
                "x": 0,
                "y": 1,
                "yanchor": "bottom",
                "traceorder": "normal",
            },
            "showlegend": len(chart.lines) > 1,
            "hovermode": "x unified",
            "hoverlabel": {"namelength": -1},
            "margin": {"l": 48, "r": 12, "t": 12, "b": 44},
        },
    )
    return str(figure.to_json())


def _trace(line: Line, chart: Chart, color: str) -> go.Scatter:
    few = len(line.steps) <= MARKERS_UP_TO
    return go.Scatter(
        x=list(line.steps),
        y=list(line.values),
        # Plotly reads tags in names: what a file says is shown, never obeyed.
        name=html.escape(line.name),
        mode="lines+markers" if few and not line.is_context else "lines",
        line={"color": color, "width": 1 if line.is_context or chart.is_stacked else 2},
        stackgroup="one" if chart.is_stacked else None,
    )
