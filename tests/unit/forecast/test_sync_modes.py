from typing import get_args

import pytest

from dragoman.config import SyncSettings
from dragoman.distributed.ring_bytes import messages_of
from dragoman.forecast.sync_modes import (
    LADDER,
    OPT_IN,
    QUALITY_COST,
    Link,
    Workload,
    bucket_mb_for,
    choose,
    explicit_keys,
    forecast,
)

BASE = 60_880_896
SLOW = Link(12.5e6, latency_s=0.0)
TWO = Workload(BASE, ranks=2, ranks_on_host=1, hosts=2, compute_s=1.8, backward_s=0.8)
LOCAL = SyncSettings(mode="local", local_steps=8, fragments=4, delay=2, wire="bf16")


def test_gradients_travel_beside_backward_and_the_rest_is_exposed():
    found = forecast(SyncSettings(), TWO, SLOW)

    assert found.bytes_per_step == 4 * BASE
    assert found.sending_s == pytest.approx(19.48, abs=0.01)
    assert found.exposed_s == pytest.approx(found.sending_s - 0.8)
    assert found.step_s == pytest.approx(1.8 + found.exposed_s)


def test_the_last_bucket_is_always_exposed():
    found = forecast(SyncSettings(), TWO, Link(1.25e9, latency_s=0.0))

    assert found.sending_s < TWO.backward_s
    assert found.exposed_s == pytest.approx(found.sending_s / messages_of(4 * BASE))


def test_a_fragment_has_the_steps_of_its_delay_to_travel():
    """Four fragments of 30.4 MB take 2.44 s each; two steps of computing hide 2 s of each."""
    found = forecast(LOCAL, TWO._replace(compute_s=1.0), SLOW)

    assert found.bytes_per_step == pytest.approx(2 * BASE / 8, rel=1e-4)
    assert found.exposed_s == pytest.approx(4 * (2 * BASE / 4 / 12.5e6 - 2.0) / 8, rel=1e-3)
    assert forecast(LOCAL, TWO._replace(compute_s=1.3), SLOW).exposed_s == 0


def test_without_a_delay_all_is_waited_for():
    found = forecast(LOCAL.model_copy(update={"delay": 0}), TWO, SLOW)

    assert found.exposed_s == pytest.approx(found.sending_s)


def test_fragments_share_one_link_however_long_each_may_travel():
    long, whole_window = (
        forecast(LOCAL.model_copy(update={"delay": delay}), TWO._replace(compute_s=0.5), SLOW)
        for delay in (7, 2)  # 7 is the most that a recipe may set here
    )

    assert long.exposed_s == pytest.approx(whole_window.exposed_s)
    assert long.exposed_s > 0


def test_each_collective_takes_the_latency_once():
    far = Link(float("inf"), latency_s=0.1)
    buckets = messages_of(4 * BASE)

    assert forecast(SyncSettings(), TWO, far).sending_s == pytest.approx(0.1 * buckets)
    assert forecast(SyncSettings(mode="bf16"), TWO, far).sending_s == pytest.approx(0.2 * buckets)
    assert forecast(LOCAL, TWO, far).sending_s == pytest.approx(0.1 * 2 * 4 / 8)


def test_one_rank_sends_nothing():
    alone = forecast(SyncSettings(), TWO._replace(ranks=1, hosts=1), Link(1e6, latency_s=1.0))

    assert (alone.bytes_per_step, alone.exposed_s, alone.step_s) == (0, 0, 1.8)


@pytest.mark.parametrize(
    ("mbit_s", "keys"),
    [
        (10_000, {"mode": "fp32"}),
        (1_000, {"mode": "bf16"}),
        (100, {"mode": "local", "local_steps": 2, "wire": "4bit"}),
        (30, {"mode": "local", "local_steps": 4, "wire": "4bit"}),
        (18, {"mode": "local", "local_steps": 8, "wire": "4bit"}),
        (12, {"mode": "local", "local_steps": 12, "wire": "4bit"}),
        (1, {"mode": "local", "local_steps": 12, "wire": "4bit"}),
    ],
)
def test_the_mildest_that_is_enough_is_chosen_else_the_one_that_waits_least(mbit_s, keys):
    found, chosen = choose(TWO, Link(mbit_s * 125e3, latency_s=0.001))

    assert [each.settings for each in found] == list(LADDER)
    assert explicit_keys(chosen.settings) == keys


def test_each_rung_sends_less_than_the_one_before():
    sent = [forecast(each, TWO, SLOW).bytes_per_step for each in (*LADDER, OPT_IN)]

    assert sent == sorted(sent, reverse=True)
    assert len(set(sent)) == len(sent)


def test_what_gives_up_quality_is_not_on_the_ladder():
    assert OPT_IN not in LADDER


@pytest.mark.parametrize(
    "keys",
    [
        {"mode": "fp32"},
        {"mode": "accumulate", "accumulate": 4},
        {"mode": "local", "local_steps": 8, "wire": "fp32", "delay": 1, "group": "host"},
        {"mode": "diloco", "local_steps": 30, "wire": "4bit", "outer_rate": 0.5},
    ],
)
def test_the_keys_that_are_named_make_the_same_settings(keys):
    assert explicit_keys(SyncSettings(**keys)) == keys


def test_what_each_mode_costs_in_quality_is_said():
    modes = get_args(SyncSettings.model_fields["mode"].annotation)

    assert set(QUALITY_COST) == set(modes)
    assert [mode for mode in modes if not QUALITY_COST[mode]] == ["fp32"]


def test_buckets_are_as_small_as_latency_allows():
    sizes = [bucket_mb_for(Link(1.25e8, latency_s)) for latency_s in (1e-5, 1e-3, 5e-3, 1.0)]
    assert sizes == [1.0, 2.4, 11.9, 25.0]


def test_smaller_buckets_leave_less_for_the_end_of_backward():
    workload = Workload(60_880_896, 2, 1, 2, compute_s=20.0, backward_s=15.0)
    usual, small = (
        forecast(SyncSettings(bucket_mb=bucket_mb), workload, Link(1e8, 1e-5))
        for bucket_mb in (None, 1.0)
    )
    assert small.exposed_s < usual.exposed_s / 10
