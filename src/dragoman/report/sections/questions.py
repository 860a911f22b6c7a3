"""The sections of the questions: each with its figures and plots, and those with urgent advice."""

from collections.abc import Callable, Mapping, Sequence

from dragoman.diagnosis.findings import Health
from dragoman.diagnosis.phrasing import quantity
from dragoman.diagnosis.questions import PlotName, question_of
from dragoman.report.content import Answer, EvidenceFigure, Report
from dragoman.report.document import Plot, QuestionSection, TextTable, ToDo
from dragoman.report.glossary import words_in
from dragoman.report.sections import attempts, hosts, learning, steps

# An answer names its figures in the order of their weight.
FIRST_FIGURES = 8
# More than this is read by nobody; the rest stays with its answers.
MOST_TO_DO = 3

PLOTS: Mapping[PlotName, Callable[[Report], Plot | None]] = {
    "attempts": attempts.plot,
    "BLEU": learning.bleu,
    "CPU utilization": lambda report: hosts.cpu_utilization(report.hosts),
    "GPU utilization": lambda report: hosts.gpu_utilization(report.hosts),
    "learning rate": learning.learning_rate,
    "network throughput": lambda report: hosts.network_throughput(report.hosts),
    "step parts": steps.parts,
    "step time": steps.step_time,
    "step time histogram": steps.histogram,
    "traffic per step": steps.traffic,
    "training loss": learning.training_loss,
    "validation and training sample loss": learning.validation_and_training_sample_loss,
    "validation loss": learning.validation_loss,
}
_URGENCY: Mapping[Health, int] = {"poor": 0, "watch": 1, "fact": 2}


def question_section(answer: Answer, report: Report, number: int | None = None) -> QuestionSection:
    question = question_of(answer.key)
    figures = answer.evidence
    # One or two more are not worth a fold.
    cut = len(figures) if len(figures) <= FIRST_FIGURES + 2 else FIRST_FIGURES
    plots = (PLOTS[name](report) for name in question.plots)
    return QuestionSection(
        number,
        question.title,
        answer,
        words_in(answer),
        _table(figures[:cut]),
        _table(figures[cut:]),
        [plot for plot in plots if plot],
    )


def to_do(sections: Sequence[QuestionSection]) -> list[ToDo]:
    """Returns the advice to follow first, each once: the most urgent, then what saves most.

    The second advice of an answer is mostly another way to the same end: it comes after the first
    one of every other answer.
    """
    found = [
        (place, _URGENCY[section.answer.health], -(advice.saves_s or 0.0), ToDo(section, advice))
        for section in sections
        if section.answer.health in _URGENCY
        for place, advice in enumerate(section.answer.advice)
    ]
    once: dict[str, ToDo] = {}
    for *_, item in sorted(found, key=lambda ranked: ranked[:3]):
        once.setdefault(item.advice.command or item.advice.text, item)
    return list(once.values())[:MOST_TO_DO]


def _table(figures: Sequence[EvidenceFigure]) -> TextTable | None:
    """Leaves out columns that would be empty."""
    if not figures:
        return None
    columns = [
        ("figure", "l", [figure.name for figure in figures]),
        ("value", "r", [_value(figure) for figure in figures]),
        ("95 % interval", "r", [_interval(figure) for figure in figures]),
        ("note", "l", [figure.note for figure in figures]),
    ]
    shown = [column for column in columns if any(column[2])]
    return TextTable(
        header=[title for title, _, _ in shown],
        rows=list(zip(*(cells for _, _, cells in shown), strict=True)),
        alignment="".join(align for _, align, _ in shown),
    )


def _value(figure: EvidenceFigure) -> str:
    """1.8 s, 365 MB, 71 %, 4,524,868 lines, as set."""
    if figure.value is None:
        return "not known"
    if isinstance(figure.value, str):
        return f"{figure.value} {figure.unit}".strip()
    return quantity(figure.value, figure.unit)


def _interval(figure: EvidenceFigure) -> str:
    """900 ms to 1.1 s, 0.2 to 0.6 BLEU; empty: none is known."""
    if figure.low is None or figure.high is None:
        return ""
    low, high = quantity(figure.low, figure.unit), quantity(figure.high, figure.unit)
    if figure.unit and low.endswith(f" {figure.unit}") and high.endswith(f" {figure.unit}"):
        low = low.removesuffix(f" {figure.unit}")
    return f"{low} to {high}"
