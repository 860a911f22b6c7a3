import numpy as np
import pytest

from dragoman.diagnosis.estimate import Estimate, autocorrelation
from dragoman.diagnosis.findings import Figure


def test_an_interval_follows_from_an_error_and_gives_it_back():
    estimate = Estimate.of(2.0, 0.5)
    assert (estimate.low, estimate.high) == pytest.approx((1.02, 2.98))
    assert estimate.error == pytest.approx(0.5)


def test_an_estimate_becomes_a_figure_with_its_interval():
    figure = Estimate(2.0, 1.0, 4.0).figure("gain", "nats", "so far")
    assert figure == Figure("gain", 2.0, "nats", 1.0, 4.0, "so far")


def test_neighbors_that_err_alike_are_correlated():
    noise = np.random.default_rng(4).normal(size=1000)
    assert autocorrelation(noise) == pytest.approx(0.0, abs=0.1)
    assert autocorrelation(np.repeat(noise, 2)) == pytest.approx(0.5, abs=0.1)
    assert autocorrelation(np.zeros(5)) == 0.0
