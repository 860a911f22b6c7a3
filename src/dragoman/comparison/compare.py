"""Two run directories come in, all that differed goes out."""

import time
from collections.abc import Callable

from dragoman.comparison.cost import cost_of
from dragoman.comparison.data import data_of
from dragoman.comparison.machines import machines_of
from dragoman.comparison.quality import quality_of
from dragoman.comparison.rows import ComparedRun, Comparison
from dragoman.comparison.settings import settings_of
from dragoman.comparison.speed import speed_of
from dragoman.diagnosis.run.record import RunRecord, read_run
from dragoman.diagnosis.run.timeline import history_of
from dragoman.errors import UserError
from dragoman.rundir import RunDir


def compare(
    first: RunDir, second: RunDir, progress: Callable[[int], None] = lambda read_bytes: None
) -> Comparison:
    if first.root.resolve() == second.root.resolve():
        raise UserError(f"{second.root}: is the same run as {first.root}; name another one")
    read_at = time.time()
    records = [read_run(run, read_at, progress) for run in (first, second)]
    _refuse_other_languages(*records)
    a, b = (
        ComparedRun(run, record, history_of(record))
        for run, record in zip((first, second), records, strict=True)
    )
    return Comparison(
        a=str(first.root),
        b=str(second.root),
        settings=settings_of(a, b),
        data=data_of(a, b),
        machines=machines_of(a, b),
        speed=speed_of(a, b),
        quality=quality_of(a, b),
        cost=cost_of(a, b),
    )


def _refuse_other_languages(a: RunRecord, b: RunRecord) -> None:
    first, second = (
        f"{record.config.data.source_language} to {record.config.data.target_language}"
        for record in (a, b)
    )
    if first != second:
        raise UserError(
            f"{a.root} translates {first} and {b.root} {second}; only runs of the same languages "
            "can be compared"
        )
