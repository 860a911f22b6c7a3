import pytest

from dragoman.config import parse_config
from dragoman.preparation import slices


@pytest.fixture
def small_slices(monkeypatch):
    monkeypatch.setattr(slices, "PAIRS_PER_SLICE", 100)


@pytest.fixture
def recipe(digits):
    def with_settings(*overrides, name="prepared"):
        text = digits.read_text(encoding="utf-8")
        place = f"data.prepared={digits.parent}/{name}"
        return parse_config(text, "x", [place, *overrides])

    return with_settings
