"""Fixtures of the digits language."""

from pathlib import Path

import pytest
import torch
from digits_language import write_recipe

from dragoman.config import Config, parse_config

# Tiny matrices on two threads mostly wait for each other, the more so on a busy machine.
torch.set_num_threads(1)


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    """A recipe of the digits language, its text beside it."""
    return write_recipe(tmp_path)


@pytest.fixture
def digits_config(digits: Path) -> Config:
    return parse_config(digits.read_text(encoding="utf-8"), origin=str(digits))
