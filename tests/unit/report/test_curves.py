import math

import numpy as np
from unit.report.fake_run import step_table

from dragoman.report.curves import MAX_BARS, MAX_POINTS, bins_of, step_curves, step_times, thinned


def rate(step: int) -> float:
    return step * 1e-6


def test_many_steps_become_few_points_that_keep_the_slowest():
    step_s = np.full(10_000, 1.0)
    step_s[1233] = 5.0
    curves = step_curves(step_table(step_s), rate)

    assert len(curves.step) == MAX_POINTS
    assert curves.step[-1] == 10_000
    assert curves.mean_step_s[123] == 1.4  # ten steps in a point, one of them of 5 s
    assert curves.slowest_step_s[123] == 5.0
    assert curves.fastest_step_s[123] == 1.0
    assert curves.tokens_per_s[0] == 100.0


def test_parts_of_a_point_add_up_to_its_steps():
    curves = step_curves(step_table(np.linspace(1.0, 2.0, 5000)), rate)
    together = [sum(parts) for parts in zip(*curves.parts_s.values(), strict=True)]

    assert np.allclose(together, curves.mean_step_s, rtol=1e-5)


def test_a_spike_of_the_loss_is_not_averaged_away():
    loss = np.full(5000, 2.0)
    loss[2500] = 9.0
    curves = step_curves(step_table(np.ones(5000), loss=loss), rate)

    assert max(curves.highest_training_loss) == 9.0
    assert max(curves.training_loss) < 4.0


def test_losses_that_are_not_finite_become_none():
    loss = np.array([2.0, math.nan, math.inf])
    curves = step_curves(step_table(np.ones(3), loss=loss), rate)

    assert curves.training_loss == [2.0, None, None]
    assert curves.highest_training_loss == [2.0, None, None]


def test_the_rate_as_set_stands_beside_the_rate_as_run():
    curves = step_curves(step_table(np.ones(3), learning_rate=np.array([1e-6, 2e-6, 9e-6])), rate)

    assert curves.learning_rate == [1e-6, 2e-6, 9e-6]
    assert np.allclose(curves.set_learning_rate, [1e-6, 2e-6, 3e-6])


def test_no_steps_are_no_points():
    assert step_curves(step_table(np.empty(0)), rate).step == []
    assert step_times(np.empty(0)).counts == []


def test_every_step_is_in_the_histogram_or_counted_as_longer():
    chance = np.random.default_rng(1)
    seconds = np.append(chance.normal(2.0, 0.1, 9_999), 60.0)
    times = step_times(seconds)

    assert sum(times.counts) + times.longer == 10_000
    assert len(times.counts) <= MAX_BARS
    assert times.edges_s[-1] < 3.0  # one step of a minute flattens nothing
    assert times.longer >= 1


def test_bins_cover_all_rows_once():
    bins = bins_of(1234, 100)

    assert bins.first[0] == 0
    assert bins.last[-1] == 1233
    assert (bins.first[1:] == bins.last[:-1] + 1).all()


def test_a_thinned_series_keeps_both_ends():
    assert thinned(range(100), 4) == [0, 33, 66, 99]
    assert thinned([1, 2], 4) == [1, 2]
