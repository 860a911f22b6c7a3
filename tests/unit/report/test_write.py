import dataclasses
import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import plotly.offline
import pytest
from unit.report.fake_run import FakeRun, evaluated, started, step

from dragoman.report.derivation import facts_of
from dragoman.report.document import Chart, Line
from dragoman.report.facts import Schedule, State
from dragoman.report.markdown import escaped, sparkline, to_markdown
from dragoman.report.plots import figure_json
from dragoman.report.record import read_run
from dragoman.report.sections import document_of, schedule_in_words, state_in_words
from dragoman.report.webpage import to_html
from dragoman.report.write import write_report
from dragoman.rundir import write_json
from dragoman.telemetry.events import AttemptEnded, Stamped, StepDone, Trouble
from dragoman.telemetry.reader import Recorded

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
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open = tag
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        if self._open == "h2" and data.strip():
            self.headings.append(data)
        if self._open not in ("script", "style"):
            self.text += data


def documents(run: FakeRun) -> tuple[str, str, dict[str, object]]:
    html, markdown, facts = (
        path.read_text(encoding="utf-8") for path in write_report(run.directory)
    )
    return html, markdown, json.loads(facts)


def attacked(run: FakeRun) -> FakeRun:
    sample = {"source": ATTACK, "translation": ATTACK, "reference": "other " + ATTACK}
    run.with_manifest()
    return run.with_events(
        [
            (0.0, started()),
            (1.0, step(1, parts_s={ATTACK: 1.0})),
            (2.0, Trouble(1, ATTACK)),
            (3.0, evaluated(1, samples=[sample], bleu_signature=ATTACK + "\n```\n# x")),
            (4.0, AttemptEnded(1, "failed", ATTACK)),
        ]
    )


def test_both_documents_have_the_same_sections_in_the_same_order(finished_run):
    html, markdown, _ = documents(finished_run)

    assert Page(html).headings == re.findall(r"^## (.*)$", markdown, flags=re.MULTILINE)
    assert Page(html).headings[0] == "In short"


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
    html, markdown, facts = documents(finished_run)
    text = Page(html).text

    assert facts["scores"][0]["bleu"] == 31.27
    assert facts["learning"]["best_bleu"]["bleu"] == 20.0
    assert facts["speed"]["mean_step_s"] == 2.5
    for shown in (
        "60,880,896 parameters",
        "BLEU 31.3 and chrF 55.5 (1,000 sentences, beam 5)",
        "The best BLEU on validation is 20.0",
        "(50 sentences, greedy search)",
        "An average step took 2.5 s",
        "40 target tokens a second while stepping, 25 over the whole wall time",
        "Of 1,000 pairs that were read, 10 were dropped (1.0 %)",
        "It finished at step 4: training.steps = 4 are done.",
    ):
        assert shown in text
        assert shown in markdown
    assert "nrefs:1|tok:13a" in text
    assert "nrefs:1|tok:13a" in markdown


def test_a_run_without_any_step_has_a_report(empty_run):
    html, markdown, facts = documents(empty_run)

    assert "No worker has reported yet" in Page(html).text
    assert "There is no checkpoint yet." in markdown
    assert facts["speed"] is None


def test_a_run_without_an_evaluation_has_a_report(empty_run):
    empty_run.with_events([(0.0, started()), (1.0, step(1))])
    _, markdown, _ = documents(empty_run)

    assert "There is no evaluation yet." in markdown
    assert "Nothing has been translated yet." in markdown


def test_lost_steps_are_told(empty_run):
    empty_run.with_events([(0.0, started()), *((float(n), step(n)) for n in (1, 2, 3))])
    empty_run.with_events([(0.0, started(attempt=2, first_step=2)), (1.0, step(2))], attempt=2)
    html, markdown, _ = documents(empty_run)

    assert "2 steps came after the checkpoint" in markdown
    assert "2 steps came after the checkpoint" in Page(html).text


def test_a_diverged_run_gives_strict_json(empty_run):
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
            (2.0, Trouble(1, "a")),
            (3.0, evaluated(1, samples=[sample])),
            (4.0, AttemptEnded(1, "failed", "a")),
        ]
    )
    page, expected = Page(documents(attacked(empty_run))[0]), Page(documents(plain)[0])

    assert page.tags == expected.tags
    assert page.text.count('<script>alert("1")</script>') >= 4


def test_plotly_shows_tags_in_names_instead_of_obeying_them():
    chart = Chart("t", ATTACK, ".1f", [Line(ATTACK, [1], [1.0])])

    figure = figure_json(chart)
    (trace,) = json.loads(figure)["data"]
    assert "<" not in trace["name"]
    assert "<" not in figure


def test_a_table_cell_stays_one_cell_in_markdown(empty_run):
    _, markdown, _ = documents(attacked(empty_run))
    rows = [line for line in markdown.splitlines() if line.startswith("| \\<script")]
    cells_of_rows = [len(re.findall(r"(?<!\\)\|", row)) - 1 for row in rows]

    assert cells_of_rows == [4, 6, 4]  # part of a step, its course, trouble


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
    parts_s = {"data": 0.123456, "forward": 0.4, "backward": 0.6, "optimizer": 0.1}
    # Values instead of a file: reading 150 MB of JSON is the reader's business.
    events = [
        Recorded(1, 0, Stamped(n, n, StepDone(n, 1, 2 + 1 / n, 100, 1 / n, 1, True, 1.5, parts_s)))
        for n in range(1, 300_001)
    ]
    record = dataclasses.replace(read_run(empty_run.directory, read_at=0.0), events=events)
    facts = facts_of(record)
    document = document_of(facts)

    assert facts.speed is not None
    assert facts.speed.steps == 300_000
    assert len(to_html(document)) - len(plotly.offline.get_plotlyjs()) < 500_000
    assert len(to_markdown(document)) < 50_000
    assert len(json.dumps(dataclasses.asdict(facts))) < 500_000


def test_the_report_needs_no_torch():
    program = "import sys, dragoman.report.write; sys.exit('torch' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_scale_of_noam_is_called_a_factor():
    noam = Schedule("noam", 2.0, 1e-3, 8000, 0.0, 9.882e-4, 8000, None, None, None)
    words = schedule_in_words(noam, width=512)

    assert "a factor and not a rate" in words
    assert "9.88e-4 at step 8,000" in words
    assert "schedule.peak" not in words


def test_a_schedule_with_a_peak_is_not_explained_as_a_scale():
    cosine = Schedule("cosine", 2.0, 1e-3, 100, 1e-5, 1e-3, 100, None, None, None)
    words = schedule_in_words(cosine, width=512)

    assert "scale" not in words
    assert "falls along half a cosine to 1e-05 at the last step" in words


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (State("training", "", 5, 10, 3.0, 60.0), "step 5 of 10 is done, about 1 min left"),
        (State("broken off", "", 5, 10, 7200.0, None), "broke off after step 5 of 10, 2 h before"),
        (State("preempted", "a signal", 5, None, None, None), "stopped after step 5: a signal"),
        (State("failed", "no memory", 5, None, None, None), "failed after step 5: no memory"),
    ],
)
def test_each_state_is_told_in_a_sentence(state, words):
    assert words in state_in_words(state)


def test_a_sparkline_goes_from_the_lowest_to_the_highest():
    assert sparkline([0.0, 3.5, 7.0]) == "▁▅█"
    assert sparkline([2.0, 2.0]) == "▁▁"
