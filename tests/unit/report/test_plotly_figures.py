import json

import plotly.graph_objects as go
import pytest

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
from dragoman.report.plotly_figures import figure_json, figure_of

ATTACK = '<script>alert("1")</script>'
LINE = Line("a", [1, 2, 3], [1.0, None, 3.0], [0.5, None, 2.0], [1.5, None, 5.0])

PLOTS: list[Plot] = [
    Chart("t", "v", ".1f", [LINE, Line("b", [1], [2.0], style="context")]),
    Chart("t", "v", ".1f", [LINE, Line("c", [1], [2.0], style="dashed")], spread="band"),
    Chart("t", "v", ".1f", [LINE], axis="time", value_range=(0.0, 3.0)),
    Chart("t", "v", ".1f", [Line("a", [1, 2], [1.0, 2.0])], is_stacked=True),
    Chart("t", "v", ".1f", [LINE], axis="time", axis_range=(0.0, 60.0)),
    StackedBars("t", "seconds", ".3f", ["r", "s"], [("a", [1.0, None]), ("b", [2.0, 3.0])]),
    Histogram("t", "seconds", [0.0, 1.0, 2.0], [3, 4], [("mean", 1.2)]),
    Gantt("t", [GanttBar("r", 0.0, 9.0, "x", "good")], [GanttMark("r", 5.0, "y")]),
]


@pytest.mark.parametrize("plot", PLOTS)
def test_plotly_accepts_every_figure(plot):
    figure = json.loads(figure_json(plot))
    go.Figure(figure)  # which refuses what it does not know

    assert figure["data"]


def test_error_bars_reach_from_low_to_high():
    (trace,) = figure_of(Chart("t", "v", ".1f", [LINE]))["data"]

    assert trace["error_y"]["array"] == [0.5, 0.0, 2.0]
    assert trace["error_y"]["arrayminus"] == [0.5, 0.0, 1.0]


def test_a_band_has_a_gap_where_nothing_is_known():
    band, line = figure_of(Chart("t", "v", ".1f", [LINE], spread="band"))["data"]

    assert band["x"] == [1, 1, None, 3, 3, None]
    assert band["y"] == [1.5, 0.5, None, 5.0, 2.0, None]
    assert line["y"] == [1.0, None, 3.0]


def test_plotly_shows_tags_in_texts_instead_of_obeying_them():
    plots: list[Plot] = [
        Chart("t", ATTACK, ".1f", [Line(ATTACK, [1], [1.0])]),
        StackedBars("t", ATTACK, ".1f", [ATTACK], [(ATTACK, [1.0])]),
        Gantt("t", [GanttBar(ATTACK, 0.0, 1.0, ATTACK, "poor")], [GanttMark(ATTACK, 0.5, ATTACK)]),
    ]
    for plot in plots:
        figure = figure_json(plot)
        assert "<" not in figure  # nothing that could end the element it stands in
        assert "<script" not in json.dumps(json.loads(figure)).replace("<extra></extra>", "")


def test_quotes_are_shown_as_quotes():
    """Plotly does not know &quot;."""
    figure = figure_of(Chart("t", "v", ".1f", [Line("\"a\" & 'b'", [1], [1.0])]))
    assert figure["data"][0]["name"] == "\"a\" &amp; 'b'"


def test_the_axis_shows_the_range_that_is_asked_for():
    chart = Chart("t", "v", ".1f", [LINE], axis="time", axis_range=(1.0, 60.0))

    assert figure_of(chart)["layout"]["xaxis"]["range"] == [1_000, 60_000]


def test_bars_stack_their_parts_from_top_to_bottom_in_the_order_of_the_rows():
    bars = StackedBars("t", "seconds", ".3f", ["r", "s"], [("a", [1.0, None]), ("b", [2.0, 3.0])])
    figure = figure_of(bars)

    assert [trace["x"] for trace in figure["data"]] == [[1.0, None], [2.0, 3.0]]
    assert figure["layout"]["barmode"] == "stack"
    assert figure["layout"]["yaxis"]["categoryarray"] == ["s", "r"]  # Plotly begins at the bottom
