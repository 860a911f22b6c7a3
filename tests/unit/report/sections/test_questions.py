from dataclasses import replace
from typing import get_args

import pytest

from dragoman.diagnosis.questions import PlotName
from dragoman.report.content import Answer, EvidenceFigure, Report
from dragoman.report.sections.questions import PLOTS, question_section, to_do

ANSWER = Answer("hangs", "Did it hang?", "no", "good", "high", "It did not.", [], "")


def shown(report: Report, *figures: EvidenceFigure) -> list[list[str]]:
    table = question_section(replace(ANSWER, evidence=list(figures)), report).figures
    return [list(row) for row in table.rows]


def test_every_plot_that_a_question_may_name_can_be_drawn():
    assert set(PLOTS) == set(get_args(PlotName))


@pytest.mark.parametrize("name", get_args(PlotName))
def test_a_run_without_any_step_has_no_plot(empty_report, name):
    assert PLOTS[name](empty_report) is None


def test_the_unit_of_an_interval_stands_once_where_it_does_not_change(empty_report):
    gain = EvidenceFigure("gain", 0.4, "BLEU", 0.2, 0.6, "")

    assert shown(empty_report, gain) == [["gain", "0.4 BLEU", "0.2 to 0.6 BLEU"]]


def test_units_that_change_with_the_size_stay_with_each_end(empty_report):
    step = EvidenceFigure("step", 1.0, "s", 0.9, 1.1, "")

    assert shown(empty_report, step) == [["step", "1 s", "900 ms to 1.1 s"]]


def test_a_figure_that_is_not_known_says_so(empty_report):
    gain = EvidenceFigure("gain", None, "BLEU", None, None, "")

    assert shown(empty_report, gain) == [["gain", "not known"]]


@pytest.mark.parametrize(("figures", "folded"), [(8, 0), (10, 0), (11, 3), (30, 22)])
def test_many_figures_are_folded_but_for_the_first(empty_report, figures, folded):
    evidence = [EvidenceFigure(str(n), n, "steps", None, None, "") for n in range(figures)]
    section = question_section(replace(ANSWER, evidence=evidence), empty_report)
    more = section.more_figures.rows if section.more_figures else []

    assert (len(section.figures.rows), len(more)) == (figures - folded, folded)


def test_what_is_urgent_comes_first_and_each_advice_once(empty_report):
    answers = [
        replace(ANSWER, health="watch", advice="Train on."),
        replace(ANSWER, health="poor", advice="See the network."),
        replace(ANSWER, health="poor", advice="Take bf16."),
        replace(ANSWER, health="good", advice="Nothing is urgent."),
        replace(ANSWER, health="open", advice="Wait."),
        replace(ANSWER, health="fact", advice="Train on."),
        replace(ANSWER, health="poor"),
    ]
    sections = [question_section(answer, empty_report) for answer in answers]

    advice = [section.answer.advice for section in to_do(sections)]
    assert advice == ["See the network.", "Take bf16.", "Train on."]
