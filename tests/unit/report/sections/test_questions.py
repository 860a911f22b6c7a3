from typing import get_args

import pytest

from dragoman.diagnosis.questions import PlotName
from dragoman.report.content import AdviceContent, Answer, EvidenceFigure, Report
from dragoman.report.sections.questions import PLOTS, question_section, to_do


def answer(**changes: object) -> Answer:
    usual = {"key": "hangs", "question": "?", "verdict": "no", "health": "good", "sentence": "No."}
    return Answer.model_validate(
        {**usual, "confidence": "high", "plain": "No.", "evidence": [], "advice": [], **changes}
    )


def figure(name: str, value: float | None, unit: str, low=None, high=None) -> EvidenceFigure:
    return EvidenceFigure(name=name, value=value, unit=unit, low=low, high=high, note="")


def shown(report: Report, *figures: EvidenceFigure) -> list[list[str]]:
    table = question_section(answer(evidence=figures), report).figures
    return [list(row) for row in table.rows]


def test_every_plot_that_a_question_may_name_can_be_drawn():
    assert set(PLOTS) == set(get_args(PlotName))


@pytest.mark.parametrize("name", get_args(PlotName))
def test_a_run_without_any_step_has_no_plot(empty_report, name):
    assert PLOTS[name](empty_report) is None


def test_the_unit_of_an_interval_stands_once_where_it_does_not_change(empty_report):
    gain = figure("gain", 0.4, "BLEU", 0.2, 0.6)

    assert shown(empty_report, gain) == [["gain", "0.4 BLEU", "0.2 to 0.6 BLEU"]]


def test_units_that_change_with_the_size_stay_with_each_end(empty_report):
    step = figure("step", 1.0, "s", 0.9, 1.1)

    assert shown(empty_report, step) == [["step", "1 s", "900 ms to 1.1 s"]]


def test_a_figure_that_is_not_known_says_so(empty_report):
    gain = figure("gain", None, "BLEU")

    assert shown(empty_report, gain) == [["gain", "not known"]]


@pytest.mark.parametrize(("figures", "folded"), [(8, 0), (10, 0), (11, 3), (30, 22)])
def test_many_figures_are_folded_but_for_the_first(empty_report, figures, folded):
    evidence = [figure(str(n), n, "steps") for n in range(figures)]
    section = question_section(answer(evidence=evidence), empty_report)
    more = section.more_figures.rows if section.more_figures else []

    assert (len(section.figures.rows), len(more)) == (figures - folded, folded)


def advice(text: str, command: str = "", saves_s: float | None = None) -> AdviceContent:
    return AdviceContent(
        text=text,
        command=command,
        is_recipe=False,
        recipe="",
        saves_s=saves_s,
        saves_cost=None,
        saves="",
    )


def first_to_do(report: Report, *answers: Answer) -> list[str]:
    return [
        item.advice.text for item in to_do([question_section(each, report) for each in answers])
    ]


def test_what_is_urgent_comes_first_and_then_what_saves_most(empty_report):
    found = first_to_do(
        empty_report,
        answer(health="watch", advice=[advice("Train on.", "a", 9000.0)]),
        answer(health="poor", advice=[advice("Wait less.", "b", 10.0)]),
        answer(health="poor", advice=[advice("Take a faster link.", "c", 500.0)]),
        answer(health="good", advice=[advice("Nothing is urgent.", "d")]),
        answer(health="open", advice=[advice("Wait.", "e")]),
        answer(health="poor"),
    )

    assert found == ["Take a faster link.", "Wait less.", "Train on."]


def test_a_command_stands_once_however_many_answers_advise_it(empty_report):
    found = first_to_do(
        empty_report,
        answer(health="poor", advice=[advice("See why it is slow.", "ssh a top")]),
        answer(health="watch", advice=[advice("Look at a.", "ssh a top")]),
    )

    assert found == ["See why it is slow."]


def test_there_are_three_at_most_and_another_way_to_the_same_end_comes_last(empty_report):
    ways = [advice("One way.", "a"), advice("Another way.", "b"), advice("A third.", "c")]
    found = first_to_do(
        empty_report,
        answer(health="poor", advice=ways),
        answer(health="fact", advice=[advice("Save more often.", "d")]),
    )

    assert found == ["One way.", "Save more often.", "Another way."]
