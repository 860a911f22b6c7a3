"""Invented runs, and what a reader of their reports sees."""

import json
from collections.abc import Mapping
from html.parser import HTMLParser

from unit.report.fake_run import WALL_AT, FakeRun, evaluated, started, step

from dragoman.diagnosis.findings import Finding
from dragoman.diagnosis.questions import Diagnosis
from dragoman.diagnosis.run.facts import read_facts
from dragoman.report.build import report_of
from dragoman.report.content import Report
from dragoman.report.write import write_report
from dragoman.telemetry.events import AttemptEnded, CheckpointSaved, Incident

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


def report(
    run: FakeRun, answers: Mapping[str, Finding] = {}, also: Mapping[str, Finding] = {}
) -> Report:
    facts = read_facts(run.directory, read_at=WALL_AT + 20)
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


def finish(run: FakeRun) -> FakeRun:
    """Writes the events of two ranks that did four steps."""
    steps = [(2.0, step(1, 1.0)), (4.0, step(2, 2.0)), (7.0, step(3, 3.0)), (11.0, step(4, 4.0))]
    evaluation = [(13.0, evaluated(4)), (13.5, CheckpointSaved(4, "step-00000004", 1000, 0.5))]
    ended = (16.0, AttemptEnded(4, "finished", "training.steps = 4 are done"))
    run.with_manifest()
    run.with_events([(0.0, started(ranks=2)), *steps, *evaluation, ended])
    run.with_events([(0.0, started(rank=1, ranks=2)), *steps, ended], rank=1)
    return run.with_checkpoint(4, model__safetensors=400, optimizer__safetensors=800)
