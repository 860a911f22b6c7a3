import pytest
from checked import checked

from dragoman.config import load_config
from dragoman.plan.plan import plan_from_assumption, plan_from_check
from dragoman.plan.terminal import WIDTH, table_text, terminal_text

CONFIG = load_config("wmt16-en-de", ["cost.budget=5.0"])
PLANS = {
    "assumed": plan_from_assumption(CONFIG, "4 nodes, 1gbit, 14 TFLOP/s, 16 GB, 0.5/h"),
    "measured": plan_from_check(CONFIG, checked()),
    "alone": plan_from_assumption(CONFIG, "1 node, 14 TFLOP/s"),
    "large": plan_from_assumption(CONFIG, "500 nodes, 8 gpus, 10mbit, 1 TFLOP/s, 90/h"),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_fits_into_80_columns(name):
    lines = terminal_text(PLANS[name]).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert not any("…" in line for line in lines)


def test_the_step_comes_first_and_says_what_is_measured():
    text = terminal_text(PLANS["measured"])
    step = next(line for line in text.splitlines() if line.startswith("step"))

    assert "measured" in step
    assert text.index("step ") < text.index("Recommended") < text.index("Learning rate")


def test_a_cost_above_the_budget_is_told():
    assert "ABOVE BUDGET" in terminal_text(PLANS["assumed"])


def test_one_worker_gets_no_links():
    assert "links" not in terminal_text(PLANS["alone"])


def test_columns_are_aligned():
    assert table_text(("a", "b"), [("x", "1"), ("yy", "10")], "lr").splitlines()[-1] == "yy  10"


def test_micro_batches_that_do_not_fit_are_told_at_the_top_and_with_what_to_set():
    text = terminal_text(plan_from_assumption(CONFIG, "1 node, 14 TFLOP/s, 2 GB"))
    assert text.index("DOES NOT FIT") < text.index("Recommended")
    assert "training.micro_batch_tokens to" in text.split("Memory of a worker")[1]
    assert "DOES NOT FIT" not in terminal_text(PLANS["assumed"])


def test_a_run_that_the_clock_ends_shows_how_far_each_mode_comes():
    config = load_config("wmt16-en-de", ["training.hours=10.0"])
    plan = plan_from_assumption(config, "4 nodes, 1gbit, 14 TFLOP/s, 0.5/h")
    text = terminal_text(plan)

    assert f"about {plan.own.steps:,} of 300,000 steps" in text
    assert "0 s less" not in text
    assert max(map(len, text.splitlines())) <= WIDTH


def test_a_budget_that_nothing_can_be_held_against_is_told():
    plan = PLANS["alone"]
    assert "cost.budget" in terminal_text(plan)
    assert "cost.budget" in plan.summary_lines()[1]
