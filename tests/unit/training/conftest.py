import pytest

from dragoman.config import parse_config
from dragoman.preparation import prepare
from dragoman.rundir import RunDir
from dragoman.training.train import train


@pytest.fixture
def run_with(digits, tmp_path):
    """Train a run in this process with some settings changed."""

    def run(*overrides, name="run", interruption=None):
        config = parse_config(digits.read_text(encoding="utf-8"), "x", overrides)
        prepare(config)
        directory = RunDir(tmp_path / name)
        return train(config, directory, interruption=interruption), directory

    return run
