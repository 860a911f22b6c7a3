import pytest
from unit.config.refusal import refused

from dragoman.config import dump_config, parse_config


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["sync.mode=turbo"], ["sync.mode", "'accumulate', 'local', 'diloco' or 'auto'"]),
        (["sync.mode=local", "sync.local_steps=13"], ["sync.local_steps = 13", "'diloco'"]),
        (["sync.mode=local", "sync.local_steps=1"], ["sync.local_steps = 1", "from 2 to 500"]),
        (["sync.mode=bf16", "sync.local_steps=4"], ["sync.local_steps = 4", "sync.mode = 'bf16'"]),
        (["sync.group=host"], ["sync.group = 'host'", "sync.mode = 'fp32'"]),
        (["sync.accumulate=4"], ["sync.accumulate = 4", "sync.mode = 'fp32'"]),
        (["sync.accumulate_applied=true"], ["sync.accumulate_applied", "sync.mode = 'fp32'"]),
        (["sync.mode=accumulate"], ["sync.mode = 'accumulate' needs sync.accumulate"]),
        (["sync.mode=local", "sync.outer_momentum=1.0"], ["sync.outer_momentum = 1.0"]),
        (["sync.mode=local", "sync.fragments=9"], ["sync.fragments = 9", "sync.local_steps = 8"]),
        (["sync.mode=local", "sync.delay=8"], ["sync.delay = 8", "more than 7"]),
        (["sync.mode=local", "sync.fragments=0"], ["sync.fragments = 0", "from 1 to 500"]),
        (["sync.mode=local", "sync.mixing=1.5"], ["sync.mixing = 1.5"]),
        (["sync.mode=diloco", "sync.wire=2bit"], ["sync.wire", "'fp32', 'bf16' or '4bit'"]),
        (["sync.mode=local", "sync.bucket_mb=4"], ["sync.bucket_mb = 4.0", "'local'"]),
        (["sync.mode=auto", "sync.bucket_mb=4"], ["sync.bucket_mb = 4.0", "'auto'"]),
        (["sync.mode=auto", "sync.wire=4bit"], ["sync.wire = '4bit'", "sync.mode = 'auto'"]),
        (["sync.bucket_mb=0"], ["sync.bucket_mb = 0"]),
        (["sync.wire=4bit"], ["sync.wire = '4bit'", "sync.mode = 'fp32'"]),
    ],
)
def test_a_way_to_synchronize_that_makes_no_sense_is_refused_with_the_keys(text, changes, words):
    message = refused(text, overrides=changes)
    assert all(word in message for word in words), message
    assert "\n" not in message


def test_only_the_key_that_was_given_is_refused(text):
    """And not the delay, which would follow from it."""
    message = refused(text, overrides=["sync.mode=local", "sync.local_steps=-3"])
    assert "sync.local_steps = -3" in message
    assert "sync.delay" not in message


def test_a_config_from_before_there_were_modes_is_exact(text):
    config = parse_config(text, "x.toml")
    assert (config.sync.mode, config.sync.is_local, config.sync.window_steps) == ("fp32", False, 1)


@pytest.mark.parametrize(("mode", "steps", "outer"), [("local", 8, 1.0), ("diloco", 30, 0.7)])
def test_modes_with_steps_of_their_own_have_defaults_that_the_config_shows(
    text, mode, steps, outer
):
    config = parse_config(text, "x.toml", [f"sync.mode={mode}"])
    assert (config.sync.window_steps, config.sync.outer_rate) == (steps, outer)
    assert f"local_steps = {steps}" in dump_config(config)
    assert parse_config(dump_config(config), "x.toml") == config


@pytest.mark.parametrize(
    ("changes", "fragments", "delay"),
    [
        ([], 4, 2),
        (["sync.local_steps=12"], 4, 3),
        (["sync.local_steps=3"], 3, 1),
        (["sync.fragments=1"], 1, 0),
        (["sync.fragments=2"], 2, 4),
        (["sync.delay=0"], 4, 0),
    ],
)
def test_one_fragment_is_always_on_its_way_unless_there_is_one_or_another_delay(
    text, changes, fragments, delay
):
    sync = parse_config(text, "x.toml", ["sync.mode=local", *changes]).sync
    assert (sync.fragments, sync.delay) == (fragments, delay)


@pytest.mark.parametrize("key", ["local_steps", "wire", "fragments", "delay", "mixing"])
def test_a_key_that_a_program_sets_to_none_is_unset(text, key):
    unset = parse_config(text, "x.toml", ["sync.mode=local"])
    assert parse_config(text, "x.toml", {"sync.mode": "local", f"sync.{key}": None}) == unset
