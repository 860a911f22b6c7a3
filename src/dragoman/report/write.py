"""A run directory comes in, report.html, report.md and report.json are in it afterwards."""

import dataclasses
import json
import time
from pathlib import Path

from dragoman.report.derivation import facts_of
from dragoman.report.markdown import to_markdown
from dragoman.report.record import read_run
from dragoman.report.sections import document_of
from dragoman.report.webpage import to_html
from dragoman.rundir import RunDir, write_whole


def write_report(run: RunDir) -> list[Path]:
    facts = facts_of(read_run(run, read_at=time.time()))
    document = document_of(facts)
    contents = {
        "html": to_html(document),
        "md": to_markdown(document),
        "json": json.dumps(dataclasses.asdict(facts), ensure_ascii=False, allow_nan=False) + "\n",
    }
    paths = []
    for suffix, content in contents.items():
        paths.append(run.report(suffix))
        write_whole(paths[-1], content)
    return paths
