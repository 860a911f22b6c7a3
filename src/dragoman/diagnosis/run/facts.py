"""All facts of a run: what every answer reads. Each is derived once, when it is first needed."""

from functools import cached_property

from dragoman.diagnosis.run.fault_events import faults_in
from dragoman.diagnosis.run.faults import FaultHistory
from dragoman.diagnosis.run.host_traffic import HostTraffic, host_traffic_of
from dragoman.diagnosis.run.hosts import HostSensors, host_sensors_of
from dragoman.diagnosis.run.record import RunRecord, read_run
from dragoman.diagnosis.run.silences import Silence, silences_in
from dragoman.diagnosis.run.steps import StepParts
from dragoman.diagnosis.run.timeline import timeline_of
from dragoman.rundir import RunDir
from dragoman.telemetry.read.tables import Table


class RunFacts:
    def __init__(self, record: RunRecord) -> None:
        self.record = record
        self.config = record.config
        self._timeline = timeline_of(record)
        self.attempts = self._timeline.attempts
        self.steps = self._timeline.steps
        self.evaluations = self._timeline.evaluations
        self.silent_s = self._timeline.silent_s
        self.wall_s = self._timeline.wall_s

    @property
    def steps_by_rank(self) -> dict[int, Table]:
        return self._timeline.steps_by_rank

    @property
    def step_parts(self) -> StepParts:
        return self._timeline.step_parts

    @cached_property
    def faults(self) -> FaultHistory:
        return faults_in(self.record, self._timeline)

    @cached_property
    def hosts(self) -> dict[str, HostSensors]:
        return host_sensors_of(self.record, self._timeline)

    @cached_property
    def host_traffic(self) -> list[HostTraffic]:
        return host_traffic_of(self._timeline, self.hosts)

    @cached_property
    def silences(self) -> list[Silence]:
        return silences_in(self.record, self._timeline)


def read_facts(run: RunDir, read_at: float) -> RunFacts:
    """Returns the facts of a run directory; `read_at` is the present, for what is still silent."""
    return RunFacts(read_run(run, read_at))
