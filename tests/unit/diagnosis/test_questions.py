import json
import re

import jsonschema
import pytest
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps

from dragoman.diagnosis import questions
from dragoman.diagnosis.findings import Figure, Finding, advised, unknown
from dragoman.diagnosis.questions import ALSO, QUESTIONS, Question, diagnose, health_of
from dragoman.report.content import report_schema
from dragoman.report.write import write_report
from dragoman.telemetry.events import AttemptEnded


def usual_run(tmp_path, **more):
    return write_steps(new_run(tmp_path), lambda *_: with_parts(), **more)


def finding(verdict: str, advice: str = "") -> Finding:
    return Finding(verdict, "high", "A sentence.", (), advised(advice))


def fails(run):
    raise ZeroDivisionError("division by zero.")


def test_the_table_holds_eleven_questions_and_eight_that_are_reported_at_need():
    assert len(QUESTIONS) == 11
    assert [question.key for question in ALSO] == [
        *("faults", "hangs", "stragglers", "more-machines"),
        *("spikes", "memory", "padding", "quality"),
    ]
    for name in ("key", "text", "title"):
        assert len({getattr(question, name) for question in (*QUESTIONS, *ALSO)}) == 11 + 8


def test_the_questions_are_answered_in_their_order(tmp_path):
    found = diagnose(read(usual_run(tmp_path))).answers

    assert list(found) == [question.key for question in QUESTIONS]


def test_a_run_without_any_event_is_diagnosed_too(tmp_path):
    found = diagnose(read(new_run(tmp_path)))

    assert list(found.answers) == [question.key for question in QUESTIONS]
    assert found.also == {}


def test_a_run_in_order_has_nothing_to_add(tmp_path):
    ended = AttemptEnded(60, "finished", "done")
    run = usual_run(tmp_path, beside=lambda rank, end: [(end + 1, ended)])

    assert list(diagnose(read(run)).also) == ["more-machines"]


@pytest.mark.parametrize("table", ["QUESTIONS", "ALSO"])
def test_an_answer_that_fails_costs_no_other(tmp_path, monkeypatch, table):
    failing = Question("new", "New?", "New", fails)
    monkeypatch.setattr(questions, table, [failing, *getattr(questions, table)])
    found = diagnose(read(usual_run(tmp_path)))
    findings = {**found.answers, **found.also}

    assert findings["new"].verdict == "not known"
    assert "(ZeroDivisionError: division by zero)" in findings["new"].sentence
    assert findings["step-time"].verdict == "985 ms"


def test_a_question_that_must_be_answered_and_is_not_is_not_known(tmp_path, monkeypatch):
    silent = Question("new", "New?", "New", lambda run: None)
    monkeypatch.setattr(questions, "QUESTIONS", [silent])

    assert diagnose(read(new_run(tmp_path))).answers["new"].verdict == "not known"


def test_a_row_is_all_that_a_new_question_needs(tmp_path, monkeypatch):
    def answer(run):
        figures = [Figure("cups", 3, "cups")]
        return Finding("cold", "low", "It was.", figures, advised("Brew."))

    new = Question(
        "coffee",
        "Was there coffee?",
        "Coffee",
        answer,
        plots=["learning rate"],
        health={"cold": "poor"},
    )
    monkeypatch.setattr(questions, "ALSO", [*ALSO, new])
    run = usual_run(tmp_path)
    html, markdown, content = (path.read_text() for path in write_report(run.directory))

    report = json.loads(content)
    jsonschema.validate(report, report_schema())
    (found,) = (answer for answer in report["also"] if answer["key"] == "coffee")
    assert (found["verdict"], found["health"]) == ("cold", "poor")
    section = re.search(r"## Also: Was there coffee\?(.*?)\n## ", markdown, flags=re.DOTALL)[1]
    assert all(text in section for text in ("**cold**", "3 cups", "Brew.", "Learning rate"))
    assert "1. Coffee: Brew." in markdown
    section = re.search(r'<section id="coffee" class="poor">(.*?)</section>', html, re.DOTALL)[1]
    assert all(text in section for text in ("✕ cold", "3 cups", "Brew.", "<h3>Learning rate"))


def test_the_schema_asks_for_as_many_answers_as_the_table_has():
    answers = report_schema()["properties"]["answers"]

    assert answers["minItems"] == answers["maxItems"] == len(QUESTIONS)


@pytest.mark.parametrize(
    ("key", "verdict", "health"),
    [
        ("trained", "yes", "good"),
        ("trained", "not yet", "watch"),
        ("trained", "too early to say", "open"),
        ("overfitting", "yes", "poor"),
        ("devices", "mostly waiting", "poor"),
        ("network", "compute-bound", "good"),
        ("network", "network-bound", "poor"),
        ("learning-rate", "not as set", "watch"),
        ("traffic", "as predicted", "good"),
        ("duration", "2 h", "fact"),
    ],
)
def test_verdicts_are_good_or_bad_news(key, verdict, health):
    assert health_of(key, finding(verdict)) == health


def test_what_is_not_known_is_open_whatever_the_question():
    assert health_of("network", unknown("nobody looked")) == "open"


def test_a_figure_with_advice_is_worth_a_look():
    assert health_of("padding", finding("31 %", "Sort by length.")) == "watch"
    assert health_of("learning-rate", finding("as set", "Lower it.")) == "watch"
