import math

import pytest
from unit.diagnosis.step_split import split

from dragoman.diagnosis.speed.bottleneck import (
    Late,
    Link,
    data_makes_late,
    depends_on_who_is_late,
    shares_of,
    verdict_of,
)
from dragoman.distributed.ring_bytes import messages_of


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


def test_who_is_late_matters_only_where_ranks_wait_for_others_or_for_data():
    someone, always = Late("a", 0.5, 0.5), Late("a", 1.0, 1.0)
    for straggling_s in (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5):
        own = split(straggling_s=straggling_s, late_data_s=straggling_s, data_s=0.08)
        for held in ("", "straggler", "input-bound"):
            verdicts = {verdict_of(own, late=late, held=held) for late in (someone, always)}
            assert len(verdicts) == 1 or depends_on_who_is_late(own)
    assert not depends_on_who_is_late(split(network_s=5.0))


def test_a_rank_is_late_because_of_its_data_when_that_explains_most_of_it():
    assert data_makes_late(split(straggling_s=0.5, late_data_s=0.3))
    assert not data_makes_late(split(straggling_s=0.5, late_data_s=0.2))
