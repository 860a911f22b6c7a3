from dataclasses import replace

import pytest

from dragoman.cli.recipe_outlook import in_columns, outlook_rows, warnings_of
from dragoman.config import load_config
from dragoman.plan.assumption import Assumption
from dragoman.plan.data import unprepared
from dragoman.plan.from_assumption import setup_from_assumption
from dragoman.plan.here import Outlook
from dragoman.plan.plan import make_plan


def outlook(config, step_s=0.5, workers=1, note="", **of_data):
    """A machine on which steps take so long; None: nothing is known of it."""
    data = replace(unprepared(config, config.tokenizer.vocabulary), **of_data)
    plan = None
    if step_s:
        given = Assumption("", nodes=1, workers=workers, computing_s=step_s, is_cpu=True)
        plan = make_plan(config, setup_from_assumption(config, given, data), data)
    device = f"{workers} workers on 2 processor cores"
    return Outlook(data, plan, "3 timed steps", note, workers, device)


def rows(config, **more):
    return dict(outlook_rows(config, outlook(config, **more), "mine.toml"))


def warned(config, workers=1, **more):
    found = outlook(config, workers=workers, **more)
    return "\n".join(warnings_of(config, found, workers, "mine.toml"))


def test_time_and_step_have_intervals_and_a_source():
    told = rows(load_config("demo"), step_s=0.1)
    assert told["time"].startswith("about 2 min")
    assert " to " in told["time"]
    assert "1,050 steps, and" in told["time"]
    assert told["a step"].startswith("100 ms (")
    assert told["a step"].endswith("from 3 timed steps")
    assert "cost" not in told


@pytest.mark.parametrize(("step_s", "said"), [(50.0, " days"), (900.0, " years")])
def test_what_takes_for_ever_is_not_told_to_the_hour(step_s, said):
    told = rows(load_config("wmt16-en-de"), step_s=step_s)["time"]
    assert said in told.partition("(")[0]


def test_epochs_are_counted_where_the_data_is():
    told = rows(load_config("demo"), steps_per_epoch=420, is_prepared=True, basis="7 pairs")
    assert told["epochs"] == "2.5 of 420 steps each, with 7 pairs"
    assert "dragoman prepare mine.toml" in rows(load_config("demo"))["epochs"]


def test_a_recipe_of_epochs_has_a_length_once_data_is_prepared():
    text = ["training.epochs=3", "schedule.kind=noam"]
    config = load_config("demo", text)
    config = config.model_copy(
        update={"training": config.training.model_copy(update={"steps": None})}
    )
    assert rows(config)["time"].startswith("not known")
    assert rows(config)["epochs"].startswith("3, ")
    told = rows(config, steps_per_epoch=100, is_prepared=True)
    assert "300 steps" in told["time"]
    assert told["epochs"].startswith("3.0 of 100 steps")


def test_money_is_counted_where_there_is_a_price():
    told = rows(load_config("demo", ["cost.host_per_hour=2.0", "cost.currency=EUR"]), step_s=3.4)
    assert "EUR" in told["cost"]
    assert told["cost"].endswith("at 2 an hour")
    assert "not held against" in rows(load_config("demo", ["cost.budget=5.0"]))["cost"]


def test_a_machine_of_unknown_speed_has_no_time():
    told = rows(load_config("demo"), step_s=None)
    assert told["time"].startswith("not known")
    assert "a step" not in told


def test_more_than_a_day_is_warned_of_with_what_helps():
    config = load_config("wmt16-en-de")
    assert not warned(config, step_s=0.2, is_prepared=True)
    long = warned(config, step_s=2.0, is_prepared=True)
    assert long.startswith("6 d 23 h are long")
    assert 'model.preset = "transformer-' in long
    assert "dragoman plan mine.toml" in long
    # A model of sizes of its own has no preset beside it.
    own = load_config("wmt16-en-de", ["model.width=256"])
    assert "preset" not in warned(own, step_s=2.0, is_prepared=True)


def test_the_smaller_model_is_the_largest_that_stays_below_a_day():
    config = load_config("wmt16-en-de")
    assert '"transformer-small"' in warned(config, step_s=0.6, is_prepared=True)
    assert '"transformer-tiny-deep-shallow"' in warned(config, step_s=50.0, is_prepared=True)


def test_too_many_workers_are_warned_of():
    config = load_config("demo")
    assert "3 workers are more" in warned(config, 3, step_s=0.1, micro_batches=2)
    assert not warned(config, 2, step_s=0.1, micro_batches=2)


def test_more_workers_than_the_machine_has_cores_are_told(digits):
    config = load_config(digits)
    told = "\n".join(warnings_of(config, outlook(config, workers=2), 4, "mine.toml"))
    assert "those of 2 workers on 2 processor cores" in told
    assert "--oversubscribe" in told


def test_a_budget_that_does_not_last_is_warned_of():
    prices = ["cost.host_per_hour=3600.0", "cost.budget=1.0"]
    assert "cost.budget = 1.00 USD" in warned(load_config("demo", prices))


def test_missing_text_is_named_unless_it_is_needed_no_more(digits):
    config = load_config(digits)
    assert not warned(config)
    missing = digits.parent / "valid.en"
    missing.unlink()
    assert f"{missing} is not there yet" in warned(config)
    assert not warned(config, is_prepared=True)
    many = load_config("multi30k", {"data.folder": digits.parent})
    assert ", and 3 more are not there yet" in warned(many)


def test_a_vocabulary_that_is_not_used_is_told(digits):
    config = load_config(digits, ["tokenizer.model=x.model"])
    told = warned(config, vocabulary=32768)
    assert "tokenizer.vocabulary = 60 is not used" in told
    assert "32,768 pieces" in told
    assert not warned(config, vocabulary=60)
    assert not warned(load_config(digits), vocabulary=60)


def test_a_busy_machine_is_told_apart(digits):
    config = load_config(digits)
    busy = replace(outlook(config), load=3.5)
    assert busy.plan
    (told,) = warnings_of(config, busy, 1, "mine.toml")
    assert "3.5 processes a core" in told
    # A guess is that of the machine alone, while other programs slow what is timed.
    assert "takes more time" in told
    step_s = busy.plan.own.step_s.model_copy(update={"is_measured": True})
    own = busy.plan.own.model_copy(update={"step_s": step_s})
    timed = replace(busy, plan=busy.plan.model_copy(update={"modes": [own]}))
    assert "would take less time" in warnings_of(config, timed, 1, "mine.toml")[0]


def test_why_nothing_was_timed_is_told(digits):
    assert warned(load_config(digits), note="too large") == "too large."


@pytest.mark.parametrize("values", [[], [("a", "1"), ("long name", "2")]])
def test_values_stand_below_each_other(values):
    lines = in_columns(values)
    assert len(lines) == len(values)
    assert len({line.rindex(value) for line, (_, value) in zip(lines, values, strict=True)}) <= 1
