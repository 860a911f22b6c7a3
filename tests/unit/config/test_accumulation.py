import pytest
from unit.config.refusal import refused

from dragoman.config import as_before_accumulation, dump_config, parse_config
from dragoman.config.accumulation import with_larger_updates


def test_larger_updates_see_the_same_tokens_and_are_converted_once(text):
    plain = parse_config(text, "x.toml")
    larger = parse_config(text, "x.toml", ["sync.mode=accumulate", "sync.accumulate=4"])
    assert larger.training.tokens_per_update == 4 * plain.training.tokens_per_update
    assert (plain.training.steps, larger.training.steps) == (20, 5)
    assert (plain.schedule.warmup_steps, larger.schedule.warmup_steps) == (20, 5)
    assert (plain.evaluation.every_steps, larger.evaluation.every_steps) == (10, 3)
    assert (plain.checkpoints.every_steps, larger.checkpoints.every_steps) == (5, 2)
    assert larger.sync.accumulate_applied
    assert parse_config(dump_config(larger), "x.toml") == larger


def test_tails_are_read_back_and_converted_for_larger_updates(text):
    settings = ["schedule.kind=linear", "schedule.tails=[[12, 1e-4]]", "schedule.warmup_steps=4"]
    config = parse_config(text, "x", settings)
    assert config.schedule.tails == ((12, 1e-4),)
    assert parse_config(dump_config(config), "x") == config
    larger = parse_config(text, "x", [*settings, "sync.mode=accumulate", "sync.accumulate=4"])
    assert larger.schedule.tails == ((3, 2e-4),)
    assert as_before_accumulation(larger, "schedule.tails", larger.schedule.tails) == ((12, 1e-4),)


def test_the_average_of_larger_updates_is_of_as_many_tokens(text):
    changes = ["sync.mode=accumulate", "sync.accumulate=2", "optimizer.average_decay=0.9"]
    assert parse_config(text, "x.toml", changes).optimizer.average_decay == pytest.approx(0.81)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("training.steps", 7),
        ("evaluation.every_steps", 3),
        ("checkpoints.every_steps", 2),
        ("training.tokens_per_update", 800),
        ("schedule.peak", 0.01),
        ("optimizer.average_decay", 0.9),
        ("model.dropout", 0.3),
    ],
)
def test_a_line_for_the_recipe_gives_the_run_the_value_that_is_meant(text, key, value):
    """Recipes with larger updates are converted, so that they have to say something else."""
    larger = ["sync.mode=accumulate", "sync.accumulate=4"]
    config = parse_config(text, "x.toml", larger)
    line = as_before_accumulation(config, key, value)
    section, _, name = key.partition(".")
    read = parse_config(text, "x.toml", [*larger, f"{key}={line}"])
    assert getattr(getattr(read, section), name) == pytest.approx(value)
    exact = parse_config(text, "x.toml")
    assert as_before_accumulation(exact, key, value) == value


def test_updates_that_get_larger_than_any_may_be_are_refused(text):
    changes = ["sync.mode=accumulate", "sync.accumulate=64", "training.tokens_per_update=100000000"]
    assert "training.tokens_per_update = 6400000000" in refused(text, overrides=changes)


def test_the_settings_that_are_converted_stay_as_they_were(digits_config):
    tree = digits_config.model_dump()
    larger = with_larger_updates(tree, 2)
    assert tree == digits_config.model_dump()
    assert larger["training"]["steps"] == 10
