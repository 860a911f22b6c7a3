from pathlib import Path

import pytest


@pytest.fixture
def text(digits: Path) -> str:
    """Of a recipe of the digits language."""
    return digits.read_text(encoding="utf-8")
