"""A run directory comes in, report.html, report.md and report.json are in it afterwards."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from dragoman.diagnosis.questions import diagnose
from dragoman.diagnosis.run.facts import facts_of
from dragoman.diagnosis.run.record import read_run
from dragoman.report.build import report_of
from dragoman.report.content import Report
from dragoman.report.markdown import to_markdown
from dragoman.report.sections import document_of
from dragoman.report.webpage import to_html
from dragoman.rundir import RunDir, write_whole


def read_report(
    run: RunDir,
    progress: Callable[[int], None] = lambda read_bytes: None,
    named: RunDir | None = None,
) -> Report:
    """`named`: the run that commands in the report are about, where `run` is a copy of it."""
    record = read_run(run, time.time(), progress)
    if named:
        unreadable = [line.replace(str(run.root), str(named.root)) for line in record.unreadable]
        record = replace(record, directory=named, unreadable=unreadable)
    facts = facts_of(record)
    return report_of(facts, diagnose(facts))


def to_json(report: Report) -> str:
    return report.model_dump_json() + "\n"


def write_report(
    run: RunDir, progress: Callable[[int], None] = lambda read_bytes: None
) -> list[Path]:
    return write_documents(run, read_report(run, progress))


def write_documents(run: RunDir, report: Report) -> list[Path]:
    document = document_of(report)
    texts = {"html": to_html(document), "md": to_markdown(document), "json": to_json(report)}
    for suffix, text in texts.items():
        write_whole(run.report(suffix), text)
    return [run.report(suffix) for suffix in texts]
