"""All facts of a run: what every answer reads. Each is derived once, most when first needed."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from dragoman.config import Config
from dragoman.diagnosis.run.attempts import Attempt
from dragoman.diagnosis.run.faults import FaultHistory, faults_of
from dragoman.diagnosis.run.host_traffic import HostTraffic, host_traffic_of
from dragoman.diagnosis.run.hosts import HostSensors, host_sensors_of
from dragoman.diagnosis.run.record import RunRecord, read_run
from dragoman.diagnosis.run.silences import Silence, silences_of
from dragoman.diagnosis.run.steps import StepParts, step_parts_of
from dragoman.diagnosis.run.timeline import RunTimeline, timeline_of
from dragoman.rundir import RunDir
from dragoman.telemetry.events import ForecastMade, StepDone
from dragoman.telemetry.read.tables import Table, events_at


@dataclass(frozen=True, eq=False)
class RunFacts(RunTimeline):
    """The timeline of a run, and what follows from it and from the record."""

    record: RunRecord

    @property
    def config(self) -> Config:
        return self.record.config

    @property
    def wall_s(self) -> float:
        """Of all attempts together, without the time between them."""
        return math.fsum(attempt.wall_s for attempt in self.attempts)

    @cached_property
    def steps_by_rank(self) -> dict[int, Table]:
        """Rank -> the same steps as that rank recorded them, as far as it did."""
        done = self.record.tables[StepDone]
        return {rank: done.where(rows) for rank, rows in self.rows_by_rank.items()}

    @cached_property
    def step_parts(self) -> StepParts:
        """What these steps spent their time on, over all ranks."""
        return step_parts_of(self.attempts, self.steps_by_rank)

    @cached_property
    def faults(self) -> FaultHistory:
        return faults_of(self.attempts)

    @cached_property
    def hosts(self) -> dict[str, HostSensors]:
        return host_sensors_of(self.attempts, self.record.tables)

    @cached_property
    def host_traffic(self) -> list[HostTraffic]:
        return host_traffic_of(
            self.attempts, self.steps_by_rank, self.hosts, self.config.sync.is_local
        )

    def traffic_in(self, attempts: Sequence[Attempt]) -> list[HostTraffic]:
        """Returns the traffic of each host in some of the attempts, which other hosts may have
        taken part in than in the others."""
        if len(attempts) == len(self.attempts):
            return self.host_traffic
        sensors = host_sensors_of(attempts, self.record.tables)
        return host_traffic_of(attempts, self.steps_by_rank, sensors, self.config.sync.is_local)

    @cached_property
    def forecasts(self) -> dict[int, ForecastMade]:
        """Attempt -> what was forecast before it; without those that had no forecast."""
        made = self.record.tables[ForecastMade]
        rows = {int(number): row for row, number in enumerate(made["attempt"])}
        return dict(zip(rows, events_at(ForecastMade, made, rows.values()), strict=True))

    @cached_property
    def silences(self) -> list[Silence]:
        return silences_of(self.attempts, self.record.tables, self.step_parts, self.silent_s)


def facts_of(record: RunRecord) -> RunFacts:
    return RunFacts(**vars(timeline_of(record)), record=record)


def read_facts(
    run: RunDir, read_at: float, progress: Callable[[int], None] = lambda read_bytes: None
) -> RunFacts:
    """Returns the facts of a run directory; `read_at` is the present, for what is still silent."""
    return facts_of(read_run(run, read_at, progress))
