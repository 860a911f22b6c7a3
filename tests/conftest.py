"""Fixtures of the digits language."""

from pathlib import Path

import pytest
import torch
from digits_language import RECIPE, write_digits

from dragoman.config import Config, parse_config

# Tiny matrices on two threads mostly wait for each other, the more so on a busy machine.
torch.set_num_threads(1)


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    """A recipe of the digits language, its text beside it."""
    write_digits(tmp_path, "train", 800, seed=1)
    write_digits(tmp_path, "valid", 40, seed=2)
    write_digits(tmp_path, "test", 40, seed=3)
    recipe = tmp_path / "digits.toml"
    recipe.write_text(RECIPE.format(folder=tmp_path), encoding="utf-8")
    return recipe


@pytest.fixture
def digits_config(digits: Path) -> Config:
    return parse_config(digits.read_text(encoding="utf-8"), origin=str(digits))
