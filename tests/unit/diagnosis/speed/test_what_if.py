import math

import pytest
from unit.diagnosis.step_split import split

from dragoman.diagnosis.speed.bottleneck import Link
from dragoman.diagnosis.speed.what_if import hidden_network_s, projected_steps


def test_ten_times_the_rate_takes_a_tenth_of_what_is_exposed():
    then = projected_steps(split(compute_s=1.0, network_s=9.0), Link(messages=11))

    assert then.faster_link_s == pytest.approx(1.9)
    assert then.half_bytes_s == pytest.approx(5.5)
    assert then.double_updates_s == pytest.approx(5.5)
    assert then.fourfold_updates_s == pytest.approx(3.25)
    assert then.saving(then.half_bytes_s) == pytest.approx(0.45)


def test_what_is_hidden_stays_hidden_when_the_bytes_become_fewer():
    # The bytes take 2 s at the rate of the link, 0.5 s of it beside backward: half of the bytes
    # take 1 s, and 0.5 s of that still fits there.
    own = split(compute_s=1.0, network_s=1.5)
    link = Link(messages=11, bytes_per_step=250e6, carried=125e6, reading_s=0.5)

    assert hidden_network_s(own, link) == pytest.approx(0.5)
    assert projected_steps(own, link).half_bytes_s == pytest.approx(1.5)


def test_no_more_is_hidden_than_backward_lasts():
    own = split(compute_s=0.3, network_s=1.5)
    link = Link(messages=11, bytes_per_step=1e9, carried=125e6, reading_s=0.5)

    assert hidden_network_s(own, link) == pytest.approx(0.2)


def test_a_rate_read_over_long_times_says_nothing_about_what_is_hidden():
    own = split(compute_s=1.0, network_s=1.5)

    assert math.isnan(
        hidden_network_s(own, Link(11, bytes_per_step=250e6, carried=90e6, reading_s=60.0))
    )


def test_latency_does_not_shrink_with_the_bytes():
    then = projected_steps(split(network_s=1.0, rest_s=0.4), Link(messages=2))

    assert then.now_s - then.faster_link_s == pytest.approx(0.2 * 0.9)
