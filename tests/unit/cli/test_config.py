from processes import dragoman, sentence

from dragoman.config import config_keys, load_config, parse_config, source_keys


def test_what_is_shown_is_a_recipe_that_runs_the_same(digits):
    done = dragoman("config", digits, "--set", "training.steps=7", "--workers", 2)
    assert done.returncode == 0, done.stderr
    shown = parse_config(done.stdout, "shown")
    assert shown == load_config(digits, ["training.steps=7"])
    assert "# parameters" in done.stdout


def test_every_key_is_listed_with_its_meaning():
    shown = dragoman("config", "--keys").stdout
    for key, _, meaning in config_keys():
        assert f"{key}" in shown
        assert meaning in shown
    for kind, _, _ in source_keys():
        assert f'kind = "{kind}"' in shown


def test_without_a_recipe_an_example_is_given():
    assert "recipes/demo.toml" in sentence(dragoman("config"), 2)
