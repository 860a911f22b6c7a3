import json
import re
import subprocess
import sys
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import numpy as np
import plotly.offline
import pytest
from unit.report.fake_run import FakeRun, evaluated, started, step, step_table

from dragoman.diagnosis.findings import Figure, Finding, unknown
from dragoman.diagnosis.questions import Diagnosis
from dragoman.diagnosis.run.facts import RunFacts, read_facts
from dragoman.diagnosis.run.record import read_run
from dragoman.report.build import report_of
from dragoman.report.content import Report, report_schema
from dragoman.report.markdown import escaped, sparkline, to_markdown
from dragoman.report.sections import document_of
from dragoman.report.webpage import to_html
from dragoman.report.write import to_json, write_report
from dragoman.rundir import write_json
from dragoman.telemetry.events import AttemptEnded, Incident, StepDone

ROOT = Path(__file__).parents[3]
ATTACK = '<script>alert("1")</script>|a\n`b` <b>'


class Page(HTMLParser):
    """What a browser would see: elements, addresses to load, headings, text outside scripts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.headings: list[str] = []
        self.text = ""
        self._open = ""
        self._in_heading = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open = tag
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag == "h2":
            self._in_heading = True
            self.headings.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_heading = self._in_heading and tag != "h2"

    def handle_data(self, data: str) -> None:
        if self._in_heading:
            self.headings[-1] += data
        if self._open not in ("script", "style"):
            self.text += data


def documents(run: FakeRun) -> tuple[str, str, dict[str, object]]:
    html, markdown, facts = (
        path.read_text(encoding="utf-8") for path in write_report(run.directory)
    )
    return html, markdown, json.loads(facts)


def report(run: FakeRun, answers: Sequence[Finding], also: Sequence[Finding]) -> Report:
    facts = read_facts(run.directory, read_at=0.0)
    return report_of(facts, Diagnosis(answers, also))


def attacked(run: FakeRun) -> FakeRun:
    sample = {"source": ATTACK, "translation": ATTACK, "reference": "other " + ATTACK}
    run.with_manifest()
    return run.with_events(
        [
            (0.0, started()),
            (1.0, step(1, parts_s={ATTACK: 1.0})),
            (2.0, Incident(1, "other", ATTACK)),
            (3.0, evaluated(1, samples=[sample], bleu_signature=ATTACK + "\n```\n# x")),
            (4.0, AttemptEnded(1, "failed", ATTACK)),
        ]
    )


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


@pytest.mark.parametrize("run", ["empty_run", "finished_run"])
def test_report_json_is_as_its_schema_says(run, request):
    _, _, content = documents(request.getfixturevalue(run))

    jsonschema.validate(content, report_schema())


def test_the_schema_refuses_what_is_no_report(finished_run):
    _, _, content = documents(finished_run)
    content["answers"].pop()

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content, report_schema())


def test_the_published_schema_is_that_of_the_code():
    published = ROOT / "docs" / "report.schema.json"

    assert json.loads(published.read_text(encoding="utf-8")) == report_schema()


def test_findings_are_shown_with_figures_intervals_and_advice(finished_run):
    figures = [Figure("gain", 0.4, "BLEU", 0.2, 0.6, "by paired resampling")]
    bad = Finding(
        "network", "Is it the network?", "network-bound", "high", "It is.", figures, "Buy."
    )
    good = Finding("trained", "Is it trained?", "yes", "low", "It is indeed.", ())
    document = document_of(report(finished_run, [good, bad], [unknown("hangs", "Hangs?", "so")]))
    html, markdown = to_html(document), to_markdown(document)

    for text in (Page(html).text, markdown):
        assert "0.2 to 0.6 BLEU" in text
        assert "by paired resampling" in text
        assert "Buy." in text
        assert "Not known, because so." in text
    assert markdown.index("needs action") > markdown.index("good")
    assert 'class="card poor"' in html


def test_no_figure_is_left_out_however_many_there_are(finished_run):
    figures = [Figure(f"figure number {number}", number, "steps") for number in range(100, 130)]
    finding = Finding("network", "?", "network-bound", "high", "It is.", figures)
    document = document_of(report(finished_run, [finding], []))

    for text in (Page(to_html(document)).text, to_markdown(document)):
        assert all(f"figure number {number}" in text for number in range(100, 130))
        assert "22 more figures" in text


def test_figures_that_are_not_finite_become_null(finished_run):
    figures = [
        Figure("loss", float("inf"), "nats", float("nan"), 2.0),
        Figure("n", np.int64(3), ""),
    ]
    finding = Finding("trained", "?", "not yet", "low", "It diverged.", figures)
    content = json.loads(to_json(report(finished_run, [finding], [])))

    (loss, count) = content["answers"][0]["evidence"]
    assert (loss["value"], loss["low"], loss["high"]) == (None, None, 2.0)
    assert count["value"] == 3


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


def test_no_text_of_a_run_becomes_markup_in_the_page(empty_run, tmp_path):
    plain = FakeRun(tmp_path / "plain").with_manifest()
    sample = {"source": "a", "translation": "a", "reference": "b"}
    plain.with_events(
        [
            (0.0, started()),
            (1.0, step(1, parts_s={"a": 1.0})),
            (2.0, Incident(1, "other", "a")),
            (3.0, evaluated(1, samples=[sample])),
            (4.0, AttemptEnded(1, "failed", "a")),
        ]
    )
    page, expected = Page(documents(attacked(empty_run))[0]), Page(documents(plain)[0])

    assert page.tags == expected.tags
    assert page.text.count('<script>alert("1")</script>') >= 4


def test_a_table_cell_stays_one_cell_in_markdown(empty_run):
    _, markdown, _ = documents(attacked(empty_run))
    tables = [
        [len(re.findall(r"(?<!\\)\|", row)) for row in paragraph.splitlines()]
        for paragraph in markdown.split("\n\n")
        if paragraph.startswith("|")
    ]

    assert len(tables) > 10
    assert all(len(set(bars)) == 1 for bars in tables)
    assert "\\<script\\>" in markdown


def test_text_with_a_fence_does_not_end_the_fenced_block(empty_run):
    _, markdown, _ = documents(attacked(empty_run))

    assert "````\nvalidation during training" in markdown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a|b\nc", r"a\|b c"),
        ("<b>", r"\<b\>"),
        ("_x_ and tokens_per_update", r"\_x\_ and tokens_per_update"),
        ("fish & chips &lt;", r"fish & chips \&lt;"),
        ("[a](b) *c* `d` \\", r"\[a\](b) \*c\* \`d\` \\"),
    ],
)
def test_markdown_shows_text_as_it_is(text, shown):
    assert escaped(text) == shown


def test_the_page_loads_nothing(finished_run):
    html, _, _ = documents(finished_run)
    page = Page(html)

    assert [address for address in page.addresses if not address.startswith("#")] == []
    assert "link" not in page.tags
    assert "img" not in page.tags
    own = html.replace(plotly.offline.get_plotlyjs(), "")
    assert "http://" not in own
    assert "https://" not in own
    assert "@import" not in own
    assert "default-src 'none'" in own


def test_the_plotting_library_is_embedded_once(finished_run):
    html, _, _ = documents(finished_run)

    assert html.count(plotly.offline.get_plotlyjs()) == 1


def test_a_report_of_300_000_steps_stays_small(empty_run):
    # Values instead of a file: reading 150 MB of JSON is the reader's business.
    record = read_run(empty_run.directory, read_at=0.0)
    record.tables.by_kind[StepDone] = step_table(np.linspace(1.2, 1.3, 300_000))
    content = report_of(RunFacts(record), Diagnosis([], []))
    document = document_of(content)

    assert content.state.step == 300_000
    assert len(to_html(document)) - len(plotly.offline.get_plotlyjs()) < 500_000
    assert len(to_markdown(document)) < 50_000
    assert len(to_json(content)) < 500_000


def test_the_report_needs_no_torch():
    program = "import sys, dragoman.report.write; sys.exit('torch' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_sparkline_goes_from_the_lowest_to_the_highest():
    assert sparkline([0.0, 3.5, 7.0]) == "▁▅█"
    assert sparkline([2.0, 2.0]) == "▁▁"
