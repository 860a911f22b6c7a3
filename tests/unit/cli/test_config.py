import re

from processes import dragoman, sentence

from dragoman.config import config_keys, load_config, parse_config, source_keys


def test_time_comes_first_and_settings_on_demand(digits):
    done = dragoman("config", digits, "--workers", 2, "--no-timing")
    assert done.returncode == 0, done.stderr
    title, time, step, *others = done.stdout.splitlines()
    assert title.startswith("digits, en to de, on this machine with ")
    assert re.search(r"^  time +about .* \(.* to .*\): 20 steps", time)
    assert re.search(r"^  a step +.* from a guess", step)
    assert any(line.startswith("  parameters") for line in others)
    assert "[training]" not in done.stdout
    assert "--all" in others[-1]
    assert not done.stderr


def test_all_that_is_shown_is_a_recipe_that_runs_the_same(digits):
    changes = ["--set", "training.steps=7"]
    done = dragoman("config", digits, *changes, "--workers", 2, "--all", "--no-timing")
    assert done.returncode == 0, done.stderr
    shown = parse_config(done.stdout, "shown")
    assert shown == load_config(digits, ["training.steps=7"])
    assert "#   parameters" in done.stdout
    assert "# digits, en to de" in done.stdout.splitlines()[0]


def test_a_tokenizer_that_is_not_there_is_one_sentence(digits, tmp_path):
    missing = tmp_path / "missing.model"
    done = dragoman("config", digits, "--no-timing", "--set", f"tokenizer.model={missing}")
    assert f"tokenizer.model = '{missing}': no such file" in sentence(done, 2)
    assert done.stderr.count("no such file") == 1


def test_every_key_is_listed_with_its_meaning():
    shown = dragoman("config", "--keys").stdout
    for key, _, meaning in config_keys():
        assert f"{key}" in shown
        assert meaning in shown
    for kind, _, _ in source_keys():
        assert f'kind = "{kind}"' in shown


def test_without_a_recipe_an_example_is_given():
    assert "recipes/demo.toml" in sentence(dragoman("config"), 2)
