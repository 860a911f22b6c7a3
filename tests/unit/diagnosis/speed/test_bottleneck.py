import math

import numpy as np
import pytest

from dragoman.diagnosis.run.steps import StepSplit
from dragoman.diagnosis.speed.bottleneck import Late, Link, messages_of, shares_of, verdict_of
from dragoman.diagnosis.speed.phases import change_place
from dragoman.diagnosis.speed.what_if import hidden_of, what_if


def split(
    compute_s: float = 1.0,
    network_s: float = 0.0,
    straggling_s: float = 0.0,
    data_s: float = 0.0,
    rest_s: float = 0.0,
    late_data_s: float = 0.0,
) -> StepSplit:
    known = [s for s in (network_s, straggling_s) if not math.isnan(s)]
    step_s = compute_s + data_s + rest_s + sum(known)
    return StepSplit(
        step_s,
        compute_s,
        network_s,
        straggling_s,
        data_s,
        checkpoint_s=0.0,
        rest_s=rest_s,
        late_data_s=late_data_s,
        small_message_s=rest_s,
        backward_s=compute_s * 2 / 3,
        busy_s=compute_s,
    )


def test_the_largest_of_what_is_not_computing_is_the_verdict():
    assert verdict_of(split()) == "compute-bound"
    assert verdict_of(split(network_s=0.5, data_s=0.4)) == "network-bound"
    assert verdict_of(split(network_s=0.4, data_s=0.5)) == "input-bound"
    assert verdict_of(split(straggling_s=0.6, network_s=0.4)) == "straggler"


def test_what_takes_less_than_a_fifth_is_no_bottleneck():
    assert verdict_of(split(network_s=0.24)) == "compute-bound"
    assert verdict_of(split(network_s=0.26)) == "network-bound"


def test_a_verdict_that_holds_is_not_given_up_for_a_trifle():
    near = split(network_s=0.22)

    assert verdict_of(near, held="network-bound") == "network-bound"
    assert verdict_of(near, held="input-bound") == "compute-bound"
    assert verdict_of(split(network_s=0.15), held="network-bound") == "compute-bound"


def test_ranks_that_are_late_by_turns_because_of_data_are_input_bound():
    uneven = split(straggling_s=0.6, late_data_s=0.6, data_s=0.1)

    assert verdict_of(uneven, late=Late("a", 0.5, 0.5)) == "input-bound"
    assert verdict_of(uneven, late=Late("a", 0.97, 0.9)) == "straggler"


def test_what_was_not_recorded_is_never_the_bottleneck():
    assert verdict_of(split(network_s=math.nan, straggling_s=math.nan)) == "compute-bound"


def test_messages_that_take_long_with_nothing_in_them_are_latency():
    slow_way = split(network_s=0.6, rest_s=0.25)
    link = Link(messages=2, bytes_per_step=5e6, port_rate=1.25e9)

    assert verdict_of(slow_way, link) == "latency-bound"


def test_a_capped_port_is_not_latency_though_its_link_looks_idle():
    # 365 MB in 29 s over a port that says 1 Gbit/s; the small message takes 8 ms.
    capped = split(compute_s=1.8, network_s=29.0, rest_s=0.008)
    link = Link(messages_of(243.5e6), bytes_per_step=365e6, port_rate=125e6, carried=12.6e6)

    assert verdict_of(capped, link) == "network-bound"


def test_a_link_that_is_full_is_not_latency():
    full = split(network_s=0.6, rest_s=0.25)
    link = Link(messages=2, bytes_per_step=7e6, port_rate=12.5e6)

    assert verdict_of(full, link) == "network-bound"


def test_shares_add_up_to_one():
    shares = shares_of(split(network_s=0.5, straggling_s=0.2, data_s=0.2, rest_s=0.1))

    assert sum(shares[:6]) == pytest.approx(1.0)


def test_ten_times_the_rate_takes_a_tenth_of_what_is_exposed():
    if_s = what_if(split(compute_s=1.0, network_s=9.0), Link(messages=11))

    assert if_s.faster_link_s == pytest.approx(1.9)
    assert if_s.half_bytes_s == pytest.approx(5.5)
    assert if_s.double_updates_s == pytest.approx(5.5)
    assert if_s.fourfold_updates_s == pytest.approx(3.25)
    assert if_s.saving(if_s.half_bytes_s) == pytest.approx(0.45)


def test_what_is_hidden_stays_hidden_when_the_bytes_become_fewer():
    # The bytes take 2 s at the rate of the link, 0.5 s of it beside backward: half of the bytes
    # take 1 s, and 0.5 s of that still fits there.
    own = split(compute_s=1.0, network_s=1.5)
    link = Link(messages=11, bytes_per_step=250e6, carried=125e6, reading_s=0.5)

    assert hidden_of(own, link) == pytest.approx(0.5)
    assert what_if(own, link).half_bytes_s == pytest.approx(1.5)


def test_no_more_is_hidden_than_backward_lasts():
    own = split(compute_s=0.3, network_s=1.5)
    link = Link(messages=11, bytes_per_step=1e9, carried=125e6, reading_s=0.5)

    assert hidden_of(own, link) == pytest.approx(0.2)


def test_a_rate_read_over_long_times_says_nothing_about_what_is_hidden():
    own = split(compute_s=1.0, network_s=1.5)

    assert math.isnan(hidden_of(own, Link(11, bytes_per_step=250e6, carried=90e6, reading_s=60.0)))


def test_latency_does_not_shrink_with_the_bytes():
    if_s = what_if(split(network_s=1.0, rest_s=0.4), Link(messages=2))

    assert if_s.now_s - if_s.faster_link_s == pytest.approx(0.2 * 0.9)


def test_a_change_is_found_to_the_step():
    values = np.concatenate([np.full(70, 0.1), np.full(30, 1.0)])
    values += np.random.default_rng(1).normal(0, 0.05, 100)

    assert change_place(values, 50, 90) == 70
