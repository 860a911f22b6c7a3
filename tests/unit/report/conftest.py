from pathlib import Path

import pytest
from unit.report.fake_run import WALL_AT, FakeRun, evaluated, started, step

from dragoman.diagnosis.questions import Diagnosis
from dragoman.diagnosis.run.facts import read_facts
from dragoman.report.build import report_of
from dragoman.report.content import Report
from dragoman.telemetry.events import AttemptEnded, CheckpointSaved


@pytest.fixture
def empty_run(tmp_path: Path) -> FakeRun:
    """As it is before the first worker has reported."""
    return FakeRun(tmp_path / "run")


@pytest.fixture
def finished_run(empty_run: FakeRun) -> FakeRun:
    ended = AttemptEnded(4, "finished", "training.steps = 4 are done")
    empty_run.with_manifest()
    empty_run.with_events(
        [
            (0.0, started(ranks=2)),
            (2.0, step(1, 1.0)),
            (4.0, step(2, 2.0)),
            (7.0, step(3, 3.0)),
            (11.0, step(4, 4.0)),
            (13.0, evaluated(4)),
            (13.5, CheckpointSaved(4, "step-00000004", 1000, 0.5)),
            (16.0, ended),
        ]
    )
    empty_run.with_events(
        [
            (0.0, started(rank=1, ranks=2)),
            (2.0, step(1, 1.0)),
            (4.0, step(2, 2.0)),
            (7.0, step(3, 3.0)),
            (11.0, step(4, 4.0)),
            (16.0, ended),
        ],
        rank=1,
    )
    return empty_run.with_checkpoint(4, model__safetensors=400, optimizer__safetensors=800)


def report_without_answers(run: FakeRun) -> Report:
    return report_of(read_facts(run.directory, read_at=WALL_AT + 20), Diagnosis([], []))


@pytest.fixture
def empty_report(empty_run: FakeRun) -> Report:
    return report_without_answers(empty_run)


@pytest.fixture
def finished_report(finished_run: FakeRun) -> Report:
    return report_without_answers(finished_run)
