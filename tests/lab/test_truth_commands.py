"""Advice whose command cannot work is noticed by `make bench-truth`."""

import pytest
from digits_language import write_recipe
from truth_lab.commands_work import why_not_followable

from dragoman.config import load_config

HOSTS = {"node1", "node2"}


@pytest.fixture
def run(tmp_path):
    recipe = write_recipe(tmp_path)
    recipe.rename(tmp_path / "config.toml")
    assert load_config(tmp_path / "config.toml").training.steps
    (tmp_path / "hosts.toml").touch()
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        "training.tokens_per_update = 800",
        "training.steps = 800\ntraining.micro_batch_tokens = 200",
        "ssh node2 'ps aux | sort -nk3 | tail'",
        "dragoman report {run}",
        "dragoman train {run}/config.toml --run {run} --hosts {run}/hosts.toml",
        "until dragoman train {run}/config.toml --hosts node1,node2; do sleep 30; done",
    ],
)
def test_a_command_that_works(run, command):
    assert why_not_followable(command.format(run=run), run, HOSTS) == ""


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("", "no command"),
        ("training.tokens_per_step = 800", "tokens_per_step"),
        ("ssh node3 top", "no host of the run"),
        ("dragoman restart {run}", "has no command restart"),
        ("dragoman train {run}/config.toml --set training.steps=none --hosts a,b", "steps"),
        ("dragoman train {run}/config.toml", "this machine alone"),
        ("dragoman train {run}/config.toml --hosts {run}/gone.toml", "does not exist"),
        ("ask-the-provider node2", "there is no command ask-the-provider"),
    ],
)
def test_a_command_that_does_not(run, command, why):
    assert why in why_not_followable(command.format(run=run), run, HOSTS)
