import math

import pytest
from unit.diagnosis.layout_run import write_layouts
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps
from unit.report.fake_run import evaluated, started, step

from dragoman.diagnosis.run.silences import Silence
from dragoman.diagnosis.run.steps import step_parts_of
from dragoman.diagnosis.speed.time_spent import (
    cost_of,
    cost_per_s,
    host_hours,
    time_spent,
    waiting_of,
)
from dragoman.telemetry.events import AttemptEnded


def two_attempts(tmp_path):
    run = new_run(tmp_path)
    run.with_events(
        [
            (0.0, started()),
            (5.0, step(1, 1.0)),
            (7.0, step(2, 2.0)),
            (10.0, evaluated(2)),
            (11.0, step(3, 1.0)),
            (12.0, AttemptEnded(3, "failed", "no memory")),
        ]
    )
    run.with_events(
        [
            (0.0, started(attempt=2, first_step=3)),
            (3.0, step(3, 1.0)),
            (4.0, AttemptEnded(3, "finished", "done")),
        ],
        attempt=2,
    )
    return read(run).attempts


def test_the_wall_time_is_divided_without_rest(tmp_path):
    spent = time_spent(two_attempts(tmp_path))

    assert spent.wall_s == 1004.0
    assert spent.training_s == 1.0 + 2.0 + 1.0
    assert spent.repeated_s == 1.0
    assert spent.evaluating_s == 2.0
    assert spent.starting_s == 4.0 + 2.0
    assert spent.down_s == 1000.0 - 12.0
    assert spent.still_s == 0.0
    assert math.fsum(spent[1:]) == pytest.approx(spent.wall_s)


def test_standing_still_is_taken_from_what_nothing_else_explains(tmp_path):
    attempts = two_attempts(tmp_path)
    other_s = time_spent(attempts).other_s
    spent = time_spent(attempts, still_s=2 * other_s)

    assert (spent.still_s, spent.other_s) == (pytest.approx(other_s), 0.0)


def test_each_host_costs_as_long_as_its_attempt_lasts(tmp_path):
    attempts = read(write_steps(new_run(tmp_path), lambda *_: with_parts())).attempts
    hours = 2 * attempts[0].wall_s / 3600

    assert host_hours(attempts) == pytest.approx(hours)
    assert cost_of(attempts, 3.0) == pytest.approx(3 * hours)
    assert cost_per_s(attempts, 3600.0) == pytest.approx(2.0)
    assert cost_per_s([], 3600.0) == 0.0


def test_every_host_waits_as_long_as_its_steps_do(tmp_path):
    facts = read(
        write_layouts(new_run(tmp_path), (2, 0.3), (3, 0.3), steps=20)  # 0.05 s of network each
    )
    waiting = waiting_of(facts.attempts, facts.step_parts, [])

    assert waiting.seconds == {
        "the network": pytest.approx(40 * 0.05),
        "data": pytest.approx(40 * 0.01),
    }
    assert waiting.host_s == pytest.approx(20 * 0.06 * (2 + 3))


def test_hanging_is_waiting_and_lost_steps_are_not(tmp_path):
    attempts = two_attempts(tmp_path)
    parts = step_parts_of(attempts, {})
    silence = Silence(attempt=1, step=2, seconds=50.0, is_last=False, is_step=False)
    waiting = waiting_of(attempts, parts, [silence, silence._replace(is_step=True)])

    assert waiting.seconds == {"a run that hung": 50.0}
    assert waiting.repeated_host_s == 1.0
