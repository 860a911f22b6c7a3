import math

import pytest
from unit.diagnosis.learning_run import EVALUATION_S, STEP_S, learned
from unit.report.fake_run import WALL_AT, FakeRun

from dragoman.diagnosis.learning.pace import Pace, pace_of, round_below
from dragoman.diagnosis.run.facts import read_facts


def test_a_step_takes_its_share_of_the_evaluations(tmp_path):
    settings = ["cost.host_per_hour=3.0"]
    pace = pace_of(learned(tmp_path / "run", [2.0] * 20, settings=settings).facts)
    assert pace.tokens_per_step == 1000
    assert pace.step_s == pytest.approx(STEP_S + EVALUATION_S / 10, rel=0.02)
    assert pace.seconds(100) == pytest.approx(100 * pace.step_s)
    assert pace.hosts == 2
    assert pace.cost(3600) == pytest.approx(2 * 3.0 * pace.step_s)


def test_without_steps_neither_time_nor_cost_is_known(tmp_path):
    pace = pace_of(read_facts(FakeRun(tmp_path / "run").directory, read_at=WALL_AT))
    assert (pace.seconds(100), pace.cost(100)) == (None, None)
    assert pace.tokens_per_step > 0


@pytest.mark.parametrize("pace", [Pace(1.0, 2.0, 0, 3.0), Pace(1.0, 2.0, 2, 0.0)])
def test_without_hosts_or_a_price_there_is_no_cost(pace):
    assert pace.cost(100) is None
    assert math.isclose(pace.seconds(100), 200.0)


def test_round_numbers_of_steps():
    assert [round_below(n) for n in (0.3, 1, 4.9, 12_500, 75_000)] == [1, 1, 2, 10_000, 50_000]
