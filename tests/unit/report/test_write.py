import json
import re
import subprocess
import sys

import numpy as np
import plotly.offline
import pytest
from unit.report.fake_run import evaluated, started, step, step_table
from unit.report.rendered import Page, documents, report

from dragoman.diagnosis.findings import Advice, Figure, Finding, unknown
from dragoman.diagnosis.questions import Diagnosis
from dragoman.diagnosis.run.facts import facts_of
from dragoman.diagnosis.run.record import read_run
from dragoman.report.build import report_of
from dragoman.report.markdown import escaped, to_markdown
from dragoman.report.sections import document_of
from dragoman.report.webpage import to_html
from dragoman.report.write import to_json, write_report
from dragoman.rundir import write_json
from dragoman.telemetry.events import StepDone


def test_both_documents_have_the_same_sections_in_the_same_order(finished_run):
    html, markdown, content = documents(finished_run)
    asked = [answer["question"] for answer in content["answers"]]
    in_markdown = re.findall(r"^## (?:\d+\. )?(.*)$", markdown, flags=re.MULTILINE)

    assert in_markdown[:11] == asked
    in_page = [re.sub(r"^\d+ ", "", heading) for heading in Page(html).headings]
    assert [heading for heading in in_page if heading in asked] == asked


def test_all_three_files_show_the_same_figures(finished_run):
    write_json(
        finished_run.directory.evaluation("test"),
        {
            "split": "test",
            "steps": [4],
            "sentences": 1000,
            "beam": 5,
            "length_penalty": 1.0,
            "bleu": 31.27,
            "chrf": 55.5,
            "bleu_signature": "nrefs:1|tok:13a",
            "chrf_signature": "nrefs:1|nc:6",
            "samples": [],
        },
    )
    html, markdown, content = documents(finished_run)
    text = Page(html).text

    assert content["scores"][0]["bleu"] == 31.27
    for shown in (
        "60,880,896 parameters",
        "BLEU 31.3 and chrF 55.5 (1,000 sentences, beam 5)",
        "The best BLEU on validation is 20.0",
        "It finished at step 4: training.steps = 4 are done.",
    ):
        assert shown in text
        assert shown in markdown
    for answer in content["answers"]:
        assert answer["sentence"] in text
        assert escaped(answer["sentence"]) in markdown
    assert "nrefs:1|tok:13a" in text
    assert "nrefs:1|tok:13a" in markdown


def test_the_answers_are_the_eleven_and_nothing_is_claimed_without_evidence(empty_run):
    _, markdown, content = documents(empty_run)

    assert len(content["answers"]) == 11
    for answer in content["answers"]:
        if answer["confidence"] == "none":
            assert answer["health"] == "open"
            assert answer["sentence"].startswith("Not known, because")
    assert "No worker has reported yet" in markdown


def test_findings_are_shown_with_figures_intervals_and_advice(finished_run):
    figures = [Figure("gain", 0.4, "BLEU", 0.2, 0.6, "by paired resampling")]
    answers = {
        "trained": Finding("yes", "low", "It is indeed.", ()),
        "network": Finding(
            "network-bound",
            "high",
            "It is.",
            figures,
            [
                Advice("Buy.", "ssh host-1 ethtool eth0", 7.0, recipe='[sync]\nmode = "bf16"'),
                Advice("Or.", "a.b = 1"),
            ],
            "Yes: it waits.",
        ),
    }
    document = document_of(report(finished_run, answers, {"hangs": unknown("so")}))
    html, markdown = to_html(document), to_markdown(document)

    for text in (Page(html).text, markdown):
        assert "0.2 to 0.6 BLEU" in text
        assert "by paired resampling" in text
        assert "Buy." in text
        assert "ssh host-1 ethtool eth0" in text
        assert "saves about 7 s" in text
        assert '[sync]\nmode = "bf16"' in text.replace("   mode", "mode")
        assert text.index("Yes: it waits.") < text.index("It is.")
        assert "Not known, because so." in text
    assert markdown.index("needs action") > markdown.index("good")
    assert 'class="card poor"' in html


def test_no_figure_is_left_out_however_many_there_are(finished_run):
    figures = [Figure(f"figure number {number}", number, "steps") for number in range(100, 130)]
    finding = Finding("network-bound", "high", "It is.", figures)
    document = document_of(report(finished_run, {"network": finding}))

    for text in (Page(to_html(document)).text, to_markdown(document)):
        assert all(f"figure number {number}" in text for number in range(100, 130))
        assert "22 more figures" in text


def test_a_run_without_an_evaluation_has_a_report(empty_run):
    empty_run.with_events([(0.0, started()), (1.0, step(1))])
    _, markdown, _ = documents(empty_run)

    assert "There is no evaluation yet." in markdown


def test_a_run_with_one_evaluation_has_a_report(empty_run):
    empty_run.with_events([(0.0, started()), (1.0, step(1)), (2.0, evaluated(1))])
    _, markdown, content = documents(empty_run)

    assert "The best BLEU on validation is 20.0" in markdown
    assert len(content["evaluations"]) == 1


def test_lines_of_a_newer_version_and_torn_ones_are_counted_and_said(empty_run):
    empty_run.with_events([(0.0, started()), (1.0, step(1)), (2.0, step(2))])
    path = empty_run.directory.events_of(1, 0)
    newer = '{"kind":"of-the-future","wall_at":1,"monotonic_at":1}\n'
    path.write_text(path.read_text() + newer + '{"kind":"step","wall_')
    _, markdown, content = documents(empty_run)

    assert "2 lines are torn or of a kind that this version does not know" in markdown
    assert content["state"]["step"] == 2


def test_a_rank_whose_file_is_missing_stops_nothing(finished_run):
    finished_run.directory.events_of(1, 0).unlink()
    _, _, content = documents(finished_run)

    assert len(content["answers"]) == 11
    assert content["attempts"][0]["ranks"] == 2


def test_a_run_that_diverged_is_valid_json(empty_run):
    empty_run.with_events([(0.0, started()), (1.0, step(1, loss=float("nan")))])
    path = write_report(empty_run.directory)[2]

    def refuse(constant: str) -> None:
        pytest.fail(f"{constant} is not JSON")

    json.loads(path.read_text(), parse_constant=refuse)


def test_a_report_of_300_000_steps_stays_small(empty_run):
    # Values instead of a file: reading 150 MB of JSON is the reader's business.
    record = read_run(empty_run.directory, read_at=0.0)
    record.tables.by_kind[StepDone] = step_table(np.linspace(1.2, 1.3, 300_000))
    content = report_of(facts_of(record), Diagnosis({}, {}))
    document = document_of(content)

    assert content.state.step == 300_000
    assert len(to_html(document)) - len(plotly.offline.get_plotlyjs()) < 500_000
    assert len(to_markdown(document)) < 50_000
    assert len(to_json(content)) < 500_000


def test_the_report_needs_no_torch():
    program = "import sys, dragoman.report.write; sys.exit('torch' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
