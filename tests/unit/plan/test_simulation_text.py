from pathlib import Path

from dragoman.config import load_config
from dragoman.plan.simulation import simulate_file
from dragoman.plan.simulation_text import simulation_text
from dragoman.plan.terminal import WIDTH

SHIPPED = Path(__file__).parents[3] / "recipes" / "cluster" / "simulation.toml"


def test_a_simulation_fits_into_80_columns_and_names_every_mode():
    found = simulate_file(load_config("wmt16-en-de"), SHIPPED)
    text = simulation_text(found)

    assert found.text() == text
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "diloco 30 4bit host" in text
    assert "1,024 nodes" in text
    assert "…" not in text
