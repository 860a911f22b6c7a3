import tomllib

from dragoman.config import SyncSettings, load_config
from dragoman.plan.plan import plan_from_assumption

CONFIG = load_config("wmt16-en-de")


def test_where_the_network_is_enough_nothing_is_changed():
    advice = plan_from_assumption(CONFIG, "4 nodes, 100gbit, 1.8 s").recommendation
    assert (advice.mode, advice.recipe) == ("fp32", "")


def test_on_a_slow_link_the_mildest_mode_that_is_enough_is_advised_with_lines_that_work():
    plan = plan_from_assumption(CONFIG, "4 nodes, 100mbit, 1.8 s")
    sync = tomllib.loads(plan.recommendation.recipe)["sync"]
    best = next(mode for mode in plan.modes if mode.is_recommended)

    assert SyncSettings(**sync).is_local
    assert best.settings == sync
    assert best.exposed_s.value < 0.25 * best.compute_s.value
    assert best.step_s.value < plan.own.step_s.value


def test_diloco_is_never_advised():
    plan = plan_from_assumption(CONFIG, "4 nodes, 10mbit, 1.8 s")
    assert plan.recommendation.mode.startswith("local")


def test_hosts_that_buy_nothing_are_told():
    reason = plan_from_assumption(CONFIG, "4 nodes, 100mbit, 1.8 s").recommendation.reason
    assert "1 host would be at least as fast as 4" in reason


def test_workers_without_a_micro_batch_are_told():
    reason = plan_from_assumption(CONFIG, "8 nodes, 100gbit, 1.8 s").recommendation.reason
    assert "training.micro_batch_tokens" in reason


def test_one_worker_is_left_as_it_is():
    advice = plan_from_assumption(CONFIG, "1 node, 14 TFLOP/s").recommendation
    assert (advice.mode, advice.recipe) == ("fp32", "")


def test_fewer_hosts_are_advised_where_no_mode_makes_all_of_them_as_fast():
    plan = plan_from_assumption(CONFIG, "4 nodes, 1mbit, 1.8 s")
    alone = plan.nodes[0]

    assert plan.recommendation.sentence.startswith("Train on 1 host instead of 4")
    assert plan.recommendation.recipe == ""
    assert all(
        mode.step_s.value > alone.step_s.value for mode in plan.modes if mode.name != "diloco"
    )
    assert [mode.name for mode in plan.modes if mode.is_recommended] == ["fp32"]


def test_a_mode_that_costs_quality_and_buys_nothing_is_advised_against():
    for mode in ("local", "diloco"):
        config = load_config("wmt16-en-de", [f"sync.mode={mode}"])
        plan = plan_from_assumption(config, "4 nodes, 100gbit, 1.8 s")
        assert tomllib.loads(plan.recommendation.recipe) == {"sync": {"mode": "fp32"}}


def test_where_all_wait_alike_the_mildest_is_advised():
    """Waiting for latencies, which the modes that take steps of their own have less of."""
    plan = plan_from_assumption(CONFIG, "2 nodes, 10gbit, 300 ms, 1.8 s")
    best = next(mode for mode in plan.modes if mode.is_recommended)
    allowed = [mode for mode in plan.modes if mode.settings["mode"] != "diloco"]
    fastest_s = min(mode.step_s.value for mode in allowed)

    assert best.step_s.value <= 1.05 * fastest_s
    milder = allowed[: allowed.index(best)]
    assert all(mode.step_s.value > 1.05 * fastest_s for mode in milder)
    assert best.settings["local_steps"] < 12


def test_where_the_clock_ends_the_run_a_faster_link_buys_steps():
    config = load_config("wmt16-en-de", ["training.hours=10.0"])
    plan = plan_from_assumption(config, "4 nodes, 1gbit, 14 TFLOP/s")
    assert f"instead of {plan.own.steps:,}" in plan.gains[0].sentence
