"""Fixtures of the digits language."""

import os
from pathlib import Path

import pytest
import torch
from digits_language import write_recipe

from dragoman.config import Config, parse_config

# Some virtual machines announce matrix units (AMX) that kill whoever uses them for half precision.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
# Tiny matrices on two threads mostly wait for each other, the more so on a busy machine.
torch.set_num_threads(1)


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    """A recipe of the digits language, its text beside it."""
    return write_recipe(tmp_path)


@pytest.fixture
def digits_config(digits: Path) -> Config:
    return parse_config(digits.read_text(encoding="utf-8"), origin=str(digits))
