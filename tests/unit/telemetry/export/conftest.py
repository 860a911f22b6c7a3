import pytest
from digits_language import RECIPE

from dragoman.rundir import RunDir


@pytest.fixture
def run(tmp_path):
    root = tmp_path / "run"
    root.mkdir()
    text = RECIPE.format(folder=tmp_path)
    (root / "config.toml").write_text(text, encoding="utf-8")
    return RunDir(root)
