import math
from pathlib import Path

import pytest
from unit.diagnosis.speed_run import read
from unit.report.fake_run import WALL_AT, FakeRun, evaluated, started, step

from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.speed.time_spent import time_spent
from dragoman.telemetry.events import (
    ClockOffset,
    Incident,
)


@pytest.fixture
def run(tmp_path: Path) -> FakeRun:
    return FakeRun(tmp_path / "run")


def losses(found: RunFacts) -> dict[int, float]:
    return dict(zip(found.steps["step"].tolist(), found.steps["loss"].tolist(), strict=True))


def test_steps_after_the_checkpoint_that_the_next_attempt_went_on_from_are_lost(run):
    run.with_events([(0.0, started()), *((float(n), step(n, loss=9.0)) for n in (1, 2, 3, 4))])
    run.with_events([(0.0, started(attempt=2, first_step=3)), (1.0, step(3, loss=5.0))], attempt=2)
    found = read(run)

    assert losses(found) == {1: 9.0, 2: 9.0, 3: 5.0}
    assert found.attempts[0].lost_steps == 2
    assert found.attempts[0].lost_s == 2.0
    assert found.attempts[0].last_step == 4


def test_an_attempt_that_goes_back_has_its_later_steps_counted(run):
    run.with_events(
        [
            (0.0, started()),
            *((float(n), step(n, loss=9.0)) for n in (1, 2, 3, 4)),
            (5.0, evaluated(4, bleu=99.0)),
            (6.0, step(3, loss=5.0)),
            (7.0, step(4, loss=4.0)),
            (8.0, evaluated(4, bleu=20.0)),
        ]
    )
    found = read(run)

    assert losses(found) == {1: 9.0, 2: 9.0, 3: 5.0, 4: 4.0}
    assert found.attempts[0].lost_steps == 2
    assert [e.bleu for e in found.evaluations] == [20.0]
    assert found.attempts[0].lost_s == 2 * 1.0 + 2.0


def test_scores_that_came_later_complete_the_losses_and_only_waiting_adds_time(run):
    late = {"arrived_step": 3, "beside_s": 60.0}
    run.with_events(
        [
            (0.0, started()),
            *((float(n), step(n)) for n in (1, 2)),
            (3.0, evaluated(2, bleu=None, seconds=1.0)),
            (4.0, step(3)),
            (4.5, evaluated(2, bleu=20.0, seconds=0.25, **late)),
        ]
    )
    found = read(run)

    (complete,) = found.evaluations
    assert (complete.bleu, complete.seconds, complete.beside_s) == (20.0, 1.25, 60.0)
    assert [e.seconds for e in found.attempts[0].evaluations] == [1.0, 0.25]
    assert time_spent(found.attempts).evaluating_s == 1.25


def test_a_run_that_went_back_twice_in_one_attempt(run):
    order = [1, 2, 3, 4, 5, 3, 4, 2, 3]
    events = [(float(at), step(n, loss=float(at))) for at, n in enumerate(order)]
    run.with_events([(0.0, started()), *events])

    assert losses(read(run)) == {1: 0.0, 2: 7.0, 3: 8.0}


def test_an_evaluation_that_a_resumed_run_repeats_counts_once(run):
    run.with_events([(0.0, started()), (1.0, step(1)), (2.0, evaluated(1, bleu=1.0))])
    run.with_events(
        [(0.0, started(attempt=2, first_step=2)), (1.0, evaluated(1, bleu=2.0)), (2.0, step(2))],
        attempt=2,
    )

    assert [(e.step, e.bleu) for e in read(run).evaluations] == [(1, 2.0)]


def test_what_the_lowest_rank_lacks_is_taken_from_the_others(run):
    run.with_events([(0.0, started(ranks=2)), (1.0, step(1)), (3.0, step(3))])
    run.with_events(
        [(0.0, started(rank=1, ranks=2)), *((float(n), step(n, loss=1.0)) for n in (1, 2, 3, 4))],
        rank=1,
    )

    assert losses(read(run)) == {1: 9.0, 2: 1.0, 3: 7.0, 4: 1.0}


def test_a_run_whose_rank_0_has_left_no_file_is_that_of_rank_1(run):
    run.with_events([(0.0, started(rank=1, ranks=2)), (1.0, step(1)), (2.0, step(2))], rank=1)
    found = read(run)

    assert list(losses(found)) == [1, 2]
    assert found.attempts[0].ranks == 2
    assert found.attempts[0].wall_s == 2.0


def test_an_attempt_that_says_nothing_of_its_start_takes_nothing_from_the_ones_before(run):
    run.with_events([(0.0, started()), (1.0, step(1)), (2.0, step(2))])
    run.with_events([(0.0, Incident(0, "other", "no memory"))], attempt=2)
    found = read(run)

    assert list(losses(found)) == [1, 2]
    assert found.attempts[1].first_step == 3


@pytest.mark.parametrize("has_folder", [True, False])
def test_a_run_without_any_event_has_an_empty_timeline(run, has_folder):
    if has_folder:
        run.directory.events.mkdir()
        run.directory.events_of(1, 0).write_text("")
    found = read(run)

    assert found.attempts == []
    assert len(found.steps) == 0
    assert found.steps_by_rank == {}
    assert found.evaluations == []


def test_losses_that_are_no_numbers_stay_where_they_are(run):
    run.with_events([(0.0, started()), (1.0, step(1, loss=math.nan)), (2.0, evaluated(1, None))])
    found = read(run)

    assert math.isnan(found.steps["loss"][0])
    assert found.evaluations[0].bleu is None


def test_a_clock_that_was_compared_with_rubbish_moves_no_event(run):
    run.with_events([(0.0, started(ranks=2)), (1.0, step(1))])
    rubbish = ClockOffset("host-1", math.nan, math.nan, math.nan)
    run.with_events([(0.0, started(rank=1, ranks=2)), (0.5, rubbish), (1.0, step(1))], rank=1)
    found = read(run)

    assert found.steps_by_rank[1]["at"].tolist() == [WALL_AT + 1.0]
