import pytest
from checked import checked

from dragoman.config import SyncSettings, load_config
from dragoman.plan.assumption import parse_assumption
from dragoman.plan.data import data_of
from dragoman.plan.from_assumption import setup_from_assumption
from dragoman.plan.from_check import setup_from_check
from dragoman.plan.modes import forecast_mode, modes_of, refusal_of

CONFIG = load_config("wmt16-en-de")
DATA = data_of(CONFIG, 4)


def setup_of(text="4 nodes, 100mbit, 1.8 s, 0.5/h"):
    return setup_from_assumption(CONFIG, parse_assumption(text), DATA)


def found(config=CONFIG, text="4 nodes, 100mbit, 1.8 s, 0.5/h"):
    return [mode for _, mode in modes_of(config, setup_of(text), DATA, 1000)]


def test_the_recipes_own_mode_comes_first_and_every_mode_is_there():
    modes = found()

    assert modes[0].is_own
    assert {mode.settings["mode"] for mode in modes} == {
        *("fp32", "bf16", "accumulate", "local", "diloco")
    }
    assert [mode.is_own for mode in modes].count(True) == 1
    assert [mode.is_recommended for mode in modes].count(True) == 1


def test_the_users_own_figures_come_out():
    """Four nodes, 60,880,896 parameters in fp32: 31 s a step at 100 Mbit/s, and 2 to 3 s of
    waiting at 1 Gbit/s beside 1.8 s of computing."""
    slow = found()[0]
    fast = found(text="4 nodes, 1gbit, 1.8 s")[0]

    assert slow.bytes_per_step == pytest.approx(365.3e6, rel=1e-3)
    assert slow.step_s.value == pytest.approx(31, abs=1)
    assert slow.step_s.low < 31 < slow.step_s.high
    assert 2 < fast.exposed_s.value < 3
    assert fast.sending_s.value == pytest.approx(3.06, abs=0.05)


def test_intervals_are_in_order_and_parts_add_up():
    for mode in found(text="4 nodes, 100mbit, 0.2 TFLOP/s, cpu, 0.5/h"):
        for figure in (mode.compute_s, mode.sending_s, mode.exposed_s, mode.step_s, mode.hours):
            assert 0 <= figure.low <= figure.value <= figure.high
        parts = mode.compute_s.value + mode.exposed_s.value + mode.slowed_s.value
        assert mode.step_s.value == pytest.approx(parts)
        assert mode.cost.value == pytest.approx(2.0 * mode.hours.value)


def test_what_was_measured_and_what_was_assumed_stands_beside_each_figure():
    assumed = found()[0].step_s
    setup = setup_from_check(CONFIG, checked(), DATA)
    measured = modes_of(CONFIG, setup, DATA, 1000)[0][1].step_s

    assert not assumed.is_measured
    assert measured.is_measured
    assert "all-reduces" in measured.basis


def test_a_mode_that_the_recipe_refuses_says_why_and_is_not_recommended():
    config = load_config("wmt16-en-de", ["optimizer.average_decay=0.999"])
    modes = found(config)
    local = [mode for mode in modes if mode.settings["mode"] in ("local", "diloco")]

    assert all("average_decay" in mode.refused for mode in local)
    assert next(mode for mode in modes if mode.is_recommended).name == "bf16"
    assert refusal_of(CONFIG, SyncSettings(mode="bf16")) == ""


def test_auto_is_what_it_would_choose():
    config = load_config("wmt16-en-de", ["sync.mode=auto"])
    own = found(config)[0]
    assert (own.is_own, own.is_recommended, own.settings["mode"]) == (True, True, "local")


def test_accumulating_sends_once_for_several_updates():
    own, larger = (
        forecast_mode(CONFIG, each, setup_of(), DATA)
        for each in (SyncSettings(), SyncSettings(mode="accumulate", accumulate=4))
    )
    assert larger.updates == 4
    assert larger.communication_s == pytest.approx(own.communication_s / 4, rel=0.05)
    assert larger.compute_s == pytest.approx(own.compute_s, rel=0.05)


def test_one_worker_has_one_mode():
    assert len(found(text="1 node, 14 TFLOP/s")) == 1


def test_a_run_that_the_clock_ends_takes_no_longer():
    config = load_config("wmt16-en-de", ["training.hours=2.0"])
    own = modes_of(config, setup_of(), DATA, 10**9)[0][1]
    assert own.hours.value == 2.0
    assert modes_of(config, setup_of(), DATA, None)[0][1].hours is not None
    assert modes_of(CONFIG, setup_of(), DATA, None)[0][1].hours is None


def test_where_hosts_have_several_workers_these_may_be_one():
    """Which is faster depends on the links within hosts and between them."""
    modes = found(text="4 nodes, 8 GPUs, 1gbit, 14 TFLOP/s")
    local = [mode for mode in modes if mode.settings["mode"] in ("local", "diloco")]
    assert [mode.settings.get("group", "rank") for mode in local] == ["host", "rank"] * 5
    assert not any("group" in mode.settings for mode in found())


def test_auto_keeps_the_groups_of_the_recipe():
    words = "4 nodes, 8 GPUs, 1gbit, 14 TFLOP/s"
    for group in ("rank", "host"):
        config = load_config("wmt16-en-de", ["sync.mode=auto", f"sync.group={group}"])
        own = found(config, words)[0]
        assert own.settings["mode"] == "local"
        assert own.settings.get("group", "rank") == group


def test_what_the_clock_leaves_of_a_run_is_counted_in_steps():
    limited = load_config("wmt16-en-de", ["training.hours=2.0"])
    slow, fast = (
        modes_of(limited, setup_of(f"4 nodes, {rate}, 1.8 s"), DATA, 10**6)[0][1]
        for rate in ("100mbit", "10gbit")
    )
    assert slow.steps < fast.steps < 10**6
    assert slow.steps * slow.step_s.value <= 2.0 * 3600

    # Its end is known, whatever a step takes.
    alone = modes_of(limited, setup_of(), DATA, None)[0][1].hours
    assert (alone.low, alone.value, alone.high) == (2.0, 2.0, 2.0)


def test_no_end_of_an_interval_is_beyond_the_clock():
    config = load_config("wmt16-en-de", ["training.hours=9.0"])
    own = modes_of(config, setup_of(), DATA, 1000)[0][1]
    assert own.steps == 1000
    assert own.hours.value < own.hours.high == 9.0


def test_a_recipe_that_accumulates_would_send_more_often_in_other_modes():
    """Both recipes are over the same tokens, so that what leaves it out costs the same in both."""
    larger = load_config("wmt16-en-de", ["sync.mode=accumulate", "sync.accumulate=4"])
    data = data_of(larger, 4)
    words = parse_assumption("4 nodes, 100mbit, 14 TFLOP/s")
    modes = modes_of(larger, setup_from_assumption(larger, words, data), data, 250)
    accumulated = {mode.name: mode for _, mode in modes}
    plain = {mode.name: mode for mode in found(text=words.text)}

    assert accumulated.keys() == plain.keys()
    for name, mode in plain.items():
        assert accumulated[name].hours.value == pytest.approx(mode.hours.value, rel=0.05)
        assert accumulated[name].bytes_per_step == pytest.approx(4 * mode.bytes_per_step)
