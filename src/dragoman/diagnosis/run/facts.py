"""All facts of a run: what every answer reads. Each is derived once, when it is first needed."""

from functools import cached_property

from dragoman.diagnosis.run.fault_events import faults_in
from dragoman.diagnosis.run.faults import FaultHistory
from dragoman.diagnosis.run.host_traffic import NodeTraffic, node_traffic
from dragoman.diagnosis.run.hosts import Instruments, instruments_of
from dragoman.diagnosis.run.record import RunRecord, read_run
from dragoman.diagnosis.run.silences import Silence, silences_in
from dragoman.diagnosis.run.steps import Anatomy
from dragoman.diagnosis.run.timeline import history_of
from dragoman.rundir import RunDir
from dragoman.telemetry.read.tables import Table


class RunFacts:
    def __init__(self, record: RunRecord) -> None:
        self.record = record
        self.config = record.config
        self._history = history_of(record)
        self.attempts = self._history.attempts
        self.steps = self._history.steps
        self.evaluations = self._history.evaluations
        self.silent_s = self._history.silent_s
        self.wall_s = self._history.wall_s

    @property
    def steps_by_rank(self) -> dict[int, Table]:
        return self._history.steps_by_rank

    @property
    def anatomy(self) -> Anatomy:
        return self._history.anatomy

    @cached_property
    def faults(self) -> FaultHistory:
        return faults_in(self.record, self._history)

    @cached_property
    def hosts(self) -> dict[str, Instruments]:
        return instruments_of(self.record, self._history)

    @cached_property
    def host_traffic(self) -> list[NodeTraffic]:
        return node_traffic(self._history, self.hosts)

    @cached_property
    def silences(self) -> list[Silence]:
        return silences_in(self.record, self._history)


def read_facts(run: RunDir, read_at: float) -> RunFacts:
    """Returns the facts of a run directory; `read_at` is the present, for what is still silent."""
    return RunFacts(read_run(run, read_at))
