import math
import subprocess
import sys

import numpy as np
import pytest
from unit.diagnosis.learning_run import noise

from dragoman.diagnosis.learning.robust_fit import (
    change_per,
    huber_weights,
    robust_spread,
    slope_of,
    t_97_5,
)


@pytest.mark.parametrize(
    ("degrees", "expected"), [(1, 12.706), (3, 3.182), (7, 2.365), (12, 2.179), (1000, 1.962)]
)
def test_quantiles_are_those_of_the_tables(degrees, expected):
    assert t_97_5(degrees) == pytest.approx(expected, rel=5e-4)


def test_a_slope_comes_with_its_interval():
    x = np.arange(20.0)
    slope = slope_of(x, 2.0 * x + noise(20, 1.0, 3))
    assert slope is not None
    assert slope.low < 2.0 < slope.high
    assert slope.error < 0.1
    assert slope_of(np.ones(5), x[:5]) is None
    assert slope_of(x[:2], x[:2]) is None


def test_change_is_told_per_factor():
    x = np.geomspace(1.0, 10.0, 12)
    change = change_per(2.0, x, -3.0 * np.log(x))
    assert change is not None
    assert change.value == pytest.approx(-3.0 * math.log(2.0))
    assert change_per(2.0, x[:3], x[:3]) is None


def test_one_outlier_hardly_moves_a_slope():
    x = np.arange(20.0)
    y = 2.0 * x + noise(20, 0.1, 1)
    y[15] += 50.0
    slope = slope_of(x, y)
    assert slope is not None
    assert slope.value == pytest.approx(2.0, abs=0.02)


@pytest.mark.parametrize(("kept", "least", "most"), [(0.0, 0.90, 0.99), (0.5, 0.85, 0.99)])
def test_intervals_of_slopes_hold_the_truth_even_where_neighbors_err_alike(kept, least, most):
    x, held = np.arange(60.0), 0
    for seed in range(200):
        errors = noise(60, 1.0, seed)
        for place in range(1, 60):
            errors[place] += kept * errors[place - 1]
        slope = slope_of(x, 0.1 * x + errors)
        assert slope is not None
        held += slope.low <= 0.1 <= slope.high
    assert least <= held / 200 <= most


def test_outliers_weigh_less_and_do_not_widen_the_spread():
    residuals = noise(200, 0.01, 2)
    spread = robust_spread(residuals)
    assert spread == pytest.approx(0.01, rel=0.2)
    residuals[7] = 1.0
    assert robust_spread(residuals) == pytest.approx(spread, rel=0.05)
    assert huber_weights(residuals)[7] == pytest.approx(2.5 * robust_spread(residuals))


def test_the_findings_of_a_running_training_import_no_scipy_at_their_start():
    code = "import sys, dragoman.diagnosis.watch; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
