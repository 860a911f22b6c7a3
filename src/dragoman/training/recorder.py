"""What one rank records of an attempt: events for the diagnosis, log lines for a person, and the
steps and evaluations that the observer sees."""

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass

from dragoman.config import Config
from dragoman.distributed.group import Group
from dragoman.rundir import RunDir
from dragoman.telemetry.clocks import compare_clocks
from dragoman.telemetry.events import AttemptEnded, Evaluated, Incident, StepDone, SyncChosen
from dragoman.telemetry.export.exporters import open_exporters
from dragoman.telemetry.read.events import read_events
from dragoman.telemetry.record.sampler import sampling, sensors_of_host
from dragoman.telemetry.record.status import StatusFile
from dragoman.telemetry.record.writer import EventWriter, Exporter
from dragoman.training.observer import Observer, RankParts
from dragoman.training.progress import ProgressLog


@dataclass(frozen=True)
class Recorder:
    events: EventWriter
    progress: ProgressLog
    """Silent on all ranks but 0."""
    observer: Observer
    """Called on rank 0 alone."""
    leads: bool

    def record_step(self, done: StepDone) -> None:
        self.events.emit(done)
        self.progress.step(done)

    def observe_step(self, done: StepDone, parts_by_rank: Sequence[RankParts]) -> None:
        if self.leads and (line := self.observer.after_step(done, parts_by_rank)):
            self.progress.log(line)

    def record_evaluation(self, evaluated: Evaluated) -> None:
        if not self.leads:
            return
        self.events.emit(evaluated)
        self.progress.evaluation(evaluated)
        if line := self.observer.after_evaluation(evaluated):
            self.progress.log(line)

    def record_incident(self, incident: Incident) -> None:
        self.events.emit(incident)
        self.progress.log(f"step {incident.step:,}: {incident.message}")

    def record_sync(self, chosen: SyncChosen, lines: Sequence[str]) -> None:
        """`lines`: what a person is told of it."""
        if self.leads:
            self.events.emit(chosen)
        for line in lines:
            self.progress.log(line)

    def record_end(self, ended: AttemptEnded) -> None:
        self.events.emit(ended)
        self.progress.log(f"{ended.state} at step {ended.step:,}: {ended.reason}")


@contextmanager
def open_events(config: Config, run: RunDir, group: Group, attempt: int) -> Iterator[EventWriter]:
    """Opens this rank's events; one rank of each host also serves other people's tools."""
    with ExitStack() as at_end:
        exporters: list[Exporter] = [StatusFile(run)] if group.leads else []
        if group.local_rank == 0:
            exporters += at_end.enter_context(open_exporters(config, run, group.host, group.leads))
        events = EventWriter(run.events_of(attempt, group.rank), exporters)
        at_end.callback(events.close)
        yield events


def record_clock_offset(group: Group, events: EventWriter) -> None:
    """Emits how this host's clocks stand to rank 0's. Collective: every rank must call."""
    if group.ranks > 1:
        events.emit(compare_clocks(lambda: group.sums([0.0]), group.gather, group.rank, group.host))


def sample_sensors(
    config: Config, run: RunDir, group: Group, events: EventWriter
) -> AbstractContextManager[None]:
    """While open, the first rank of this host samples its sensors.

    Collective: every rank must call.
    """
    processes = group.gather([group.host, os.getpid()])
    here = {rank: pid for rank, (host, pid) in enumerate(processes) if host == group.host}
    every_s = config.telemetry.sensors_every_s if group.local_rank == 0 else 0.0
    return sampling(events.emit, sensors_of_host(run.root, here), group.host, every_s)


def evaluations_so_far(run: RunDir, group: Group, last_step: int) -> list[Evaluated]:
    """Returns on rank 0 the evaluations of earlier attempts up to `last_step`, for the observer."""
    if not group.leads:
        return []
    recorded = read_events(run, rank=0, kinds={Evaluated})
    events = (stamped.event for _, _, stamped in recorded)
    by_step = {event.step: event for event in events if isinstance(event, Evaluated)}
    return [by_step[step] for step in sorted(by_step) if step <= last_step]
