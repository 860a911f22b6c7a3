from pathlib import Path

import pytest
from unit.diagnosis.speed_run import read
from unit.report.fake_run import WALL_AT, FakeRun, started, step

from dragoman.telemetry.events import (
    AttemptEnded,
    CheckpointSaved,
    ClockOffset,
    DeviceFound,
    Stamped,
    to_line,
)


@pytest.fixture
def run(tmp_path: Path) -> FakeRun:
    return FakeRun(tmp_path / "run")


def test_attempts_may_have_different_ranks_and_hosts(run):
    for rank in (0, 1, 2):
        run.with_events([(0.0, started(rank=rank, ranks=3)), (1.0, step(1))], rank=rank)
    run.with_events([(0.0, started(attempt=2, first_step=2)), (1.0, step(2))], attempt=2)
    found = read(run)

    assert [attempt.ranks for attempt in found.attempts] == [3, 1]
    assert [a.host_names for a in found.attempts] == [["host-0", "host-1", "host-2"], ["host-0"]]
    steps = {rank: table["step"].tolist() for rank, table in found.steps_by_rank.items()}
    assert steps == {0: [1, 2], 1: [1], 2: [1]}


def test_a_wall_clock_that_is_set_during_the_run_changes_no_duration(run):
    path = run.directory.events_of(1, 0)
    path.parent.mkdir()
    path.write_text(
        to_line(Stamped(WALL_AT, 500.0, started()))
        + to_line(Stamped(WALL_AT - 7200, 501.0, step(1)))
        + to_line(Stamped(WALL_AT + 7200, 502.0, step(2)))
    )
    found = read(run)

    assert found.attempts[0].wall_s == 2.0
    assert found.attempts[0].ended_at == WALL_AT + 2.0
    assert found.steps["step"].tolist() == [1, 2]


def test_a_host_whose_clock_is_ahead_does_not_keep_a_dead_run_alive(run):
    run.with_events([(0.0, started(ranks=2)), (1.0, step(1))])
    run.with_events(
        [
            (3600.0, started(rank=1, ranks=2)),
            (3600.5, ClockOffset("host-1", 3600.0, 3600.0, 0.001)),
            (3601.0, step(1)),
        ],
        rank=1,
    )
    found = read(run, read_s_after_start=1000.0)

    assert found.silent_s == 999.0
    assert found.attempts[0].state == "broken off"


def test_a_device_is_known_by_rank(run):
    gpu = DeviceFound("cuda:0", "A100", "bf16", 3.12e14, None)
    run.with_events([(0.0, started()), (0.5, gpu), (1.0, step(1))])

    assert read(run).attempts[0].devices == {0: gpu}


def test_the_first_to_end_gives_the_reason_on_one_clock(run):
    run.with_events([(0.0, started(ranks=2)), (9.0, AttemptEnded(1, "failed", "lost rank 1"))])
    run.with_events(
        [(0.0, started(rank=1, ranks=2)), (9.0, AttemptEnded(1, "failed", "no memory"))], rank=1
    )
    attempt = read(run).attempts[0]

    assert [end.rank for end in attempt.ends] == [0, 1]
    assert (attempt.state, attempt.reason) == ("failed", "rank 0: lost rank 1")


def saved(number: int) -> CheckpointSaved:
    return CheckpointSaved(number, f"step-{number:08d}", 10, 0.1)


def test_the_newest_save_that_was_not_rolled_back_is_what_an_attempt_can_go_back_to(run):
    steps = [*((float(n), step(n)) for n in range(1, 9)), (9.0, step(5)), (10.0, step(6))]
    events = [(0.0, started()), *steps, (4.2, saved(4)), (8.2, saved(8))]
    run.with_events(sorted(events, key=lambda event: event[0]))

    assert read(run).attempts[0].saved_step == 4


def test_an_attempt_that_has_saved_nothing_can_go_back_to_where_it_went_on_from(run):
    run.with_events([(0.0, started(first_step=11)), (1.0, step(11))])

    assert read(run).attempts[0].saved_step == 10


def test_an_attempt_worked_until_its_last_step_evaluation_or_save(run):
    end = AttemptEnded(2, "failed", "no answer", "lost-rank")
    run.with_events([(0.0, started()), (1.0, step(1)), (2.0, step(2)), (2.5, saved(2)), (9.0, end)])
    attempt = read(run).attempts[0]

    assert (attempt.worked_s, attempt.worked_at, attempt.wall_s) == (2.5, WALL_AT + 2.5, 9.0)


@pytest.mark.parametrize(
    ("silent_s", "state"), [(100.0, "training"), (130.0, "broken off"), (290.0, "broken off")]
)
def test_an_attempt_without_an_end_is_taken_for_dead_after_a_long_silence(run, silent_s, state):
    run.with_events([(0.0, started()), (1.0, step(1))])

    assert read(run, 1.0 + silent_s).attempts[0].state == state


def test_an_attempt_that_was_often_silent_may_be_silent_for_longer(run):
    run.with_events([(0.0, started()), (100.0, step(1))])

    assert read(run, 100.0 + 290.0).attempts[0].state == "training"
