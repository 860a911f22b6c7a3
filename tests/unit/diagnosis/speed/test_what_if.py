import math

import pytest
from unit.diagnosis.step_split import split

from dragoman.diagnosis.speed.bottleneck import Link
from dragoman.diagnosis.speed.what_if import (
    Team,
    hidden_network_s,
    micro_batches_of,
    projected_steps,
    projected_team,
    with_faster_link,
)


def test_ten_times_the_rate_takes_a_tenth_of_what_is_exposed():
    then = projected_steps(split(compute_s=1.0, network_s=9.0), Link(messages=11))

    assert then.faster_link_s == pytest.approx(1.9)
    assert then.double_updates_s == pytest.approx(5.5)
    assert then.fourfold_updates_s == pytest.approx(3.25)
    assert then.saving(then.double_updates_s) == pytest.approx(0.45)


def test_what_is_hidden_stays_hidden_on_a_faster_link():
    # The bytes take 2 s at the rate of the link, 0.5 s of it beside backward: at twice the rate
    # they take 1 s, and 0.5 s of that still fits there.
    own = split(compute_s=1.0, network_s=1.5)
    link = Link(messages=11, bytes_per_step=250e6, carried=125e6, reading_s=0.5)

    assert hidden_network_s(own, link) == pytest.approx(0.5)
    assert with_faster_link(own, link, 2.0) == pytest.approx(1.5)


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


def test_one_more_host_shares_computing_and_adds_to_the_rings_bytes():
    # Two hosts to three: computing 2/3 of now, bytes 2 * 2/3 instead of 2 * 1/2 of the gradients.
    then = projected_team(split(compute_s=3.0, network_s=0.3), Link(), Team(2, 2), hosts=3)

    assert then.step_s == pytest.approx(2.0 + 0.4)
    assert then.speed_up == pytest.approx(3.3 / 2.4)
    assert then.cost_factor == pytest.approx(3 * 2.4 / (2 * 3.3))


def test_one_host_alone_waits_for_no_network():
    then = projected_team(split(compute_s=1.0, network_s=9.0), Link(), Team(2, 2), hosts=1)

    assert then.step_s == pytest.approx(2.0)
    assert then.speed_up == pytest.approx(5.0)


def test_micro_batches_are_given_out_whole():
    own, team = split(compute_s=2.0), Team(2, 2, micro_batches=4)

    assert projected_team(own, Link(), team, hosts=3).step_s == pytest.approx(2.0)
    assert projected_team(own, Link(), team, hosts=4).step_s == pytest.approx(1.0)
    assert not team.of_hosts(5).has_work_for_all


def test_waiting_for_a_slow_host_stays_and_waiting_for_uneven_work_does_not():
    slow = projected_team(split(compute_s=2.0, straggling_s=0.5), Link(), Team(2, 2), hosts=4)
    # Four micro-batches on three ranks: 2 s for two of them on one rank, 1 s on the others.
    uneven = split(compute_s=1.0, straggling_s=1.0)._replace(busy_s=4 / 3)
    even = projected_team(uneven, Link(), Team(3, 3, micro_batches=4), hosts=4)

    assert slow.step_s == pytest.approx(1.5)
    assert even.step_s == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("padded_tokens", "ranks", "found"),
    [
        (3.5 * 512, 2, 4),
        (5.0 * 512, 2, 8),
        (0.5 * 512, 1, 1),
        (0.5 * 512, 3, 4),  # one for each rank at least
        (7.9 * 512, 2, None),  # packing may leave room for eight or need more
        (4.1 * 512, 2, None),
        (0.0, 2, None),
    ],
)
def test_a_step_has_a_power_of_two_of_micro_batches(padded_tokens, ranks, found):
    assert micro_batches_of(padded_tokens, 512, ranks) == found
