"""A run directory comes in, report.html, report.md and report.json are in it afterwards."""

import dataclasses
import json
import time
from collections.abc import Callable
from pathlib import Path

from dragoman.diagnosis.questions import answers_of
from dragoman.diagnosis.run.fault_events import faults_in
from dragoman.diagnosis.run.record import read_run
from dragoman.diagnosis.run.timeline import history_of
from dragoman.diagnosis.unasked import unasked_of
from dragoman.report.build import report_of
from dragoman.report.content import Report
from dragoman.report.markdown import to_markdown
from dragoman.report.sections import document_of
from dragoman.report.webpage import to_html
from dragoman.rundir import RunDir, write_whole


def read_report(run: RunDir, progress: Callable[[int], None] = lambda read_bytes: None) -> Report:
    record = read_run(run, time.time(), progress)
    history = history_of(record)
    return report_of(
        record,
        history,
        answers=answers_of(record, history),
        also=unasked_of(record, history),
        faults=faults_in(record, history).faults,
    )


def to_json(report: Report) -> str:
    return json.dumps(dataclasses.asdict(report), ensure_ascii=False, allow_nan=False) + "\n"


def write_report(
    run: RunDir, progress: Callable[[int], None] = lambda read_bytes: None
) -> list[Path]:
    report = read_report(run, progress)
    document = document_of(report)
    contents = {
        "html": to_html(document),
        "md": to_markdown(document),
        "json": to_json(report),
    }
    paths = []
    for suffix, content in contents.items():
        paths.append(run.report(suffix))
        write_whole(paths[-1], content)
    return paths
