import pytest
from checked import checked

from dragoman.config import load_config
from dragoman.errors import UserError
from dragoman.plan.plan import plan_from_assumption, plan_from_check

CONFIG = load_config("wmt16-en-de")
WORDS = "4 nodes, 1gbit, 14 TFLOP/s, 16 GB, 0.5/h"
PLAN = plan_from_assumption(CONFIG, WORDS)


def test_the_scaling_curve_goes_from_one_host_to_twice_as_many():
    counts = [point.nodes for point in PLAN.nodes]

    assert counts == [1, 2, 3, 4, 6, 8]
    assert PLAN.nodes[0].efficiency == 1.0
    assert all(0 < point.efficiency <= 1.0 + 1e-9 for point in PLAN.nodes)
    assert PLAN.nodes[3].step_s.value == PLAN.own.step_s.value
    assert [bool(point.note) for point in PLAN.nodes] == [False] * 4 + [True] * 2


def test_links_go_from_10_mbit_to_100_gbit_and_faster_ones_are_never_slower():
    assert (PLAN.links[0].bits_per_s, PLAN.links[-1].bits_per_s) == (1e7, 1e11)
    for name in PLAN.links[0].step_s:
        steps = [point.step_s[name] for point in PLAN.links]
        assert steps == sorted(steps, reverse=True)
    same = next(point for point in PLAN.links if point.bits_per_s == 1e9)
    assert same.step_s["fp32"] == pytest.approx(PLAN.own.step_s.value)


def test_memory_gives_the_largest_micro_batch_that_fits():
    memory = PLAN.memory
    assert memory.device_bytes == 16e9
    assert memory.largest_micro_batch_tokens > 7000
    largest = memory.largest_micro_batch_tokens / 7000 * memory.activation_bytes
    assert memory.state_bytes + largest <= 0.8 * 16e9
    tiny = plan_from_assumption(CONFIG, "1 node, 14 TFLOP/s, 1 GB").memory
    assert tiny.largest_micro_batch_tokens == 0


def test_a_check_gives_a_measured_plan_with_measured_memory_and_prices():
    plan = plan_from_check(CONFIG, checked(backend="nccl"))

    assert plan.is_measured
    assert plan.memory.is_measured
    assert plan.own.cost.value == pytest.approx(2.0 * plan.own.hours.value)
    assert plan.own.step_s.value == pytest.approx(0.51 + 365.3e6 / 11.9e6 - 0.25, rel=0.03)


def test_what_another_host_or_link_buys_is_told_in_hours_and_money():
    faster, more, fewer = PLAN.gains
    assert faster.saved_hours > 0
    assert faster.saved_cost == pytest.approx(2.0 * faster.saved_hours)
    assert more.saved_cost < 0
    assert fewer.saved_cost > 0


def test_a_budget_is_held_against_the_cost():
    costly = load_config("wmt16-en-de", ["cost.budget=100.0"])
    assert plan_from_assumption(costly, WORDS).exceeds_budget
    assert not PLAN.exceeds_budget
    assert PLAN.waits_longer_than_it_computes
    assert not plan_from_assumption(CONFIG, "4 nodes, 25gbit, 1.8 s").waits_longer_than_it_computes


def test_three_lines_hold_the_step_the_run_and_the_advice():
    step, run, advice = PLAN.summary_lines()
    assert "365 MB" in step
    assert "300,000 steps" in run
    assert 'Set sync.mode = "local", sync.local_steps = 2' in advice


def test_without_an_end_hours_are_unknown():
    config = CONFIG.model_copy(
        update={"training": CONFIG.training.model_copy(update={"steps": None, "patience": 3})}
    )
    plan = plan_from_assumption(config, WORDS)
    assert (plan.steps, plan.own.hours, plan.own.cost) == (None, None, None)
    assert len(plan.summary_lines()) == 3


def test_a_price_in_another_currency_is_not_taken_for_the_recipes():
    words = "4 nodes, 1gbit, 14 TFLOP/s, 0.5 €/h"
    with pytest.raises(UserError, match=r"cost\.currency=EUR"):
        plan_from_assumption(CONFIG, words)
    config = load_config("wmt16-en-de", ["cost.currency=EUR"])
    assert plan_from_assumption(config, words).currency == "EUR"
