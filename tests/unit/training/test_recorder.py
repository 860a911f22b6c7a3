import pytest
import torch
from recorded import events

from dragoman.distributed.group import Group
from dragoman.rundir import RunDir
from dragoman.telemetry.events import AttemptEnded, Evaluated, Incident, StepDone
from dragoman.telemetry.record.writer import EventWriter
from dragoman.training.observer import RankParts
from dragoman.training.progress import ProgressLog
from dragoman.training.recorder import Recorder, evaluations_so_far

PARTS = RankParts(0.1, 0.2, 0.3, 0.05, 0.01, 0.0, 0.1, 0.05, 0.6)


class Observer:
    def __init__(self):
        self.seen = []

    def after_step(self, done, parts_by_rank):
        self.seen.append((done, parts_by_rank))
        return "network-bound"

    def after_evaluation(self, evaluated):
        self.seen.append(evaluated)
        return


def done(step):
    return StepDone(step, 0.25, 3.0, 1000, 1e-3, 1.0, True, 0.5)


def evaluated(step, loss=2.5):
    return Evaluated(step, loss, None, 31.5, 50.0, "nrefs:1", "nrefs:1", True, 4.0)


@pytest.fixture
def recorder(tmp_path):
    """A recorder of rank `rank`, and the run that it records."""
    opened = []

    def of(rank):
        run = RunDir(tmp_path)
        writer = EventWriter(run.events_of(1, rank))
        opened.append(writer)
        log = ProgressLog(20, 1000.0, silent=rank > 0)
        return Recorder(writer, log, Observer(), leads=rank == 0), run

    yield of
    for writer in opened:
        writer.close()


def test_the_observer_of_rank_0_sees_all_parts_and_its_line_is_logged(recorder, caplog):
    caplog.set_level("INFO", "dragoman")
    first, _ = recorder(0)
    first.observe_step(done(1), [PARTS, PARTS])
    assert first.observer.seen == [(done(1), [PARTS, PARTS])]
    assert "network-bound" in caplog.text
    second, _ = recorder(1)
    second.observe_step(done(1), [PARTS, PARTS])
    assert second.observer.seen == []


def test_steps_incidents_and_the_end_are_recorded_by_every_rank_evaluations_by_one(recorder):
    for rank in (0, 1):
        found, run = recorder(rank)
        found.record_step(done(1))
        found.record_evaluation(evaluated(1))
        found.record_incident(Incident(1, "rollback", "back", rollback_step=0))
        found.record_end(AttemptEnded(1, "finished", "steps are done", "steps"))
        found.events.close()
    assert len(events(run, StepDone)) == len(events(run, Incident)) == 2
    assert len(events(run, AttemptEnded)) == 2
    assert events(run, Evaluated) == [evaluated(1)]


def test_earlier_evaluations_count_as_far_as_the_run_goes_on_from_them(recorder):
    found, run = recorder(0)
    for event in (evaluated(5), evaluated(10), evaluated(15), evaluated(10, loss=2.0)):
        found.events.emit(event)
    found.events.close()
    alone = Group(0, 1, 0, torch.device("cpu"))
    assert evaluations_so_far(run, alone, 12) == [evaluated(5), evaluated(10, loss=2.0)]
    assert evaluations_so_far(run, Group(1, 2, 1, torch.device("cpu")), 12) == []
