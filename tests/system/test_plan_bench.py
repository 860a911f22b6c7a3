"""The parts of `make bench-plan` that need no lab."""

import tomli_w
from plan_bench.combinations import COMBINATIONS, MODELS, SYNC, Combination, recipe_of
from plan_bench.measure import Outcome, words
from plan_bench.tables import summary, table

from dragoman.config import load_config
from dragoman.lab.rates import parse_rate
from dragoman.plan.assumption import parse_assumption


def outcome(forecast_s, measured_s):
    return Outcome(forecast_s, 0.9 * forecast_s, 1.1 * forecast_s, measured_s, 0.1, 0.1, 0.5, 0.5)


def test_combinations_cover_nodes_rates_models_and_modes():
    assert len(set(COMBINATIONS)) == len(COMBINATIONS) >= 16
    assert {one.nodes for one in COMBINATIONS} == {2, 3, 4}
    assert {one.model for one in COMBINATIONS} == set(MODELS)
    assert {one.sync for one in COMBINATIONS} == set(SYNC)
    assert {"10mbit", "none"} <= {one.link for one in COMBINATIONS}
    assert all(parse_rate(one.link) for one in COMBINATIONS)


def test_every_recipe_goes_with_every_mode(tmp_path):
    for model in MODELS:
        path = tmp_path / f"{model}.toml"
        path.write_text(tomli_w.dumps(recipe_of(model, str(tmp_path))))
        for overrides in SYNC.values():
            load_config(path, overrides)


def test_the_words_of_a_combination_can_be_read():
    for one in COMBINATIONS:
        found = parse_assumption(words(one, 4e10))
        assert (found.nodes, found.is_cpu, found.utilization) == (one.nodes, True, 1.0)


def test_errors_are_listed_with_median_worst_and_intervals():
    one, other, third = COMBINATIONS[:3]
    found = {one: outcome(1.0, 1.0), other: outcome(1.02, 1.0), third: outcome(1.5, 1.0)}
    text = summary(found, "check")

    assert "median error 2.0%" in text
    assert "worst 50.0%" in text
    assert "2 of 3 intervals" in text
    assert len(table(found).splitlines()) == 5
    assert Combination("tiny", 2, "none", "fp32").title == "tiny-2-none-fp32"
