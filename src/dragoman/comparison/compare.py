"""Two run directories come in, all that differed goes out."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from dragoman.comparison.aspects import Aspect
from dragoman.comparison.inputs import data_of, machines_of, settings_of
from dragoman.comparison.outcomes import cost_aspect, quality_aspect, speed_aspect
from dragoman.diagnosis.run.facts import facts_of
from dragoman.diagnosis.run.record import RunRecord, read_run
from dragoman.errors import UserError
from dragoman.rundir import RunDir


@dataclass(frozen=True)
class RunComparison:
    a: str
    """The folder of the first run, as it was named."""
    b: str
    settings: Aspect
    data: Aspect
    machines: Aspect
    speed: Aspect
    quality: Aspect
    cost: Aspect

    @property
    def aspects(self) -> list[Aspect]:
        return [
            *(self.settings, self.data, self.machines),
            *(self.speed, self.quality, self.cost),
        ]


def compare(
    first: RunDir, second: RunDir, progress: Callable[[int], None] = lambda read_bytes: None
) -> RunComparison:
    if first.root.resolve() == second.root.resolve():
        raise UserError(f"{second.root}: is the same run as {first.root}; name another one")
    read_at = time.time()
    records = read_run(first, read_at, progress), read_run(second, read_at, progress)
    _refuse_other_languages(*records)
    a, b = map(facts_of, records)
    return RunComparison(
        a=str(first.root),
        b=str(second.root),
        settings=settings_of(a.config, b.config),
        data=data_of(a.record, b.record),
        machines=machines_of(a, b),
        speed=speed_aspect(a, b),
        quality=quality_aspect(a, b),
        cost=cost_aspect(a, b),
    )


def _refuse_other_languages(a: RunRecord, b: RunRecord) -> None:
    first, second = (
        f"{record.config.data.source_language} to {record.config.data.target_language}"
        for record in (a, b)
    )
    if first != second:
        raise UserError(
            f"{a.directory.root} translates {first} and {b.directory.root} {second}; only runs of "
            "the same languages can be compared"
        )
