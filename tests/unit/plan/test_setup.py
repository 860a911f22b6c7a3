from dataclasses import replace

import pytest

from dragoman.config import load_config
from dragoman.plan.assumption import parse_assumption
from dragoman.plan.data import data_of
from dragoman.plan.from_assumption import setup_from_assumption

CONFIG = load_config("wmt16-en-de")
SETUP = setup_from_assumption(
    CONFIG, parse_assumption("4 nodes, 1gbit, 14 TFLOP/s, 0.5/h"), data_of(CONFIG, 4)
)


def test_cases_are_in_order():
    fast, likely, slow = (SETUP.network(case) for case in ("fast", "likely", "slow"))
    assert fast.hop_rate > likely.hop_rate > slow.hop_rate
    assert fast.latency_s < likely.latency_s < slow.latency_s

    works = [SETUP.work(case).seconds for case in ("fast", "likely", "slow")]
    assert works == sorted(works)


def test_more_hosts_share_the_micro_batches_and_cost_more():
    two, eight = (SETUP.with_hosts(count) for count in (2, 8))

    assert two.work("likely").backward_s == pytest.approx(2 * SETUP.work("likely").backward_s)
    # An update has four micro-batches: for eight workers, they have half the size.
    assert eight.work("likely").backward_s == pytest.approx(SETUP.work("likely").backward_s / 2)
    assert [each.price_per_hour for each in (two, SETUP, eight)] == [1.0, 2.0, 4.0]
    assert replace(SETUP, prices=(0.0,) * 4).price_per_hour is None


def test_another_link_keeps_what_a_collective_makes_of_it():
    setup = replace(SETUP, link_efficiency=0.8)
    faster = setup.with_rate(1e9)

    assert faster.hop_rate.value == pytest.approx(0.8e9)
    assert faster.hop_rate.low < faster.hop_rate.value < faster.hop_rate.high


def test_larger_updates_compute_more_passes_of_the_same_size():
    larger = SETUP.computing.times(4).work(4, "likely")
    own = SETUP.work("likely")

    assert larger.backward_s == pytest.approx(4 * own.backward_s)
    assert larger.last_backward_s == pytest.approx(own.last_backward_s)
    assert larger.update_s == own.update_s
