"""The learning rate as run beside the one that the settings give."""

from collections.abc import Iterable

from dragoman.report.content import Report
from dragoman.report.document import Block, Chart, Line


def plot(report: Report) -> Iterable[Block]:
    curves = report.curves
    if curves.step:
        yield Chart(
            title="Learning rate",
            value_title="learning rate",
            number_format=".2e",
            lines=[
                Line("as run", curves.step, curves.learning_rate, color=0),
                Line("as set", curves.step, curves.set_learning_rate, color=1, style="dashed"),
            ],
        )
