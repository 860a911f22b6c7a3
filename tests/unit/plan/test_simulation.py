import tomllib
from pathlib import Path

import pytest

from dragoman.config import load_config
from dragoman.errors import ConfigError
from dragoman.plan.simulation import SimulationFile, read_simulation, simulate

SHIPPED = Path(__file__).parents[3] / "recipes" / "cluster" / "simulation.toml"
CONFIG = load_config("wmt16-en-de", ["training.tokens_per_update=400000"])


def file_of(**tables):
    tree = tomllib.loads(SHIPPED.read_text(encoding="utf-8"))
    for name, table in tables.items():
        tree[name] = {**tree.get(name, {}), **table}
    return SimulationFile.model_validate(tree)


def by_mode(given):
    return {mode.mode: mode for mode in simulate(CONFIG, given).modes}


def test_the_shipped_file_shows_every_key():
    text = SHIPPED.read_text(encoding="utf-8")
    read_simulation(SHIPPED)
    for section, field in SimulationFile.model_fields.items():
        for key in getattr(field.annotation, "model_fields", {}):
            assert f"\n{key} = " in text or f"\n# {key} = " in text, f"{section}.{key}"


def test_a_thousand_nodes_are_simulated_and_the_same_seed_gives_the_same():
    first, second = simulate(CONFIG, file_of()), simulate(CONFIG, file_of())

    assert first == second
    assert (first.nodes, first.workers) == (1024, 4096)
    assert first.note
    for mode in first.modes:
        assert mode.step_low_s <= mode.step_s <= mode.step_high_s
        assert mode.hours_low <= mode.hours <= mode.hours_high
        assert 0 < mode.goodput <= 1
        assert mode.cost == pytest.approx(8.0 * 1024 * mode.hours)


def test_hosts_as_islands_are_compared_and_send_less():
    modes = by_mode(file_of())
    of_ranks = modes["local local_steps=8 wire=4bit"]
    of_hosts = modes["local local_steps=8 wire=4bit group=host"]

    assert of_hosts.bytes_per_step < of_ranks.bytes_per_step
    assert of_hosts.step_s < of_ranks.step_s
    single = simulate(CONFIG, file_of(cluster={"workers": 1})).modes
    assert not any("group=host" in mode.mode for mode in single)


def test_a_slow_link_between_sites_is_what_all_wait_for():
    one = by_mode(file_of(cluster={"sites": 1, "racks": 32}))["fp32"]
    two = by_mode(file_of(network={"between_sites_rate": "1gbit"}))["fp32"]
    assert two.waiting_s > 1.5 * one.waiting_s


def test_stragglers_and_failures_cost_time():
    calm = by_mode(file_of(stragglers={"spread": 0.0, "slow_share": 0.0}))["fp32"]
    wild = by_mode(file_of(stragglers={"spread": 0.2, "slow_share": 0.01}))["fp32"]
    often = by_mode(file_of(failures={"hours_between": 500.0}))["fp32"]

    assert calm.straggling_s == pytest.approx(0, abs=1e-9)
    assert wild.straggling_s > 0.5 * wild.compute_s
    assert often.failures > 10 * calm.failures
    assert often.goodput < calm.goodput


def test_a_run_that_never_ends_has_no_hours():
    never = by_mode(file_of(failures={"hours_between": 0.5, "save_every_s": 1e6}))["fp32"]
    assert (never.hours, never.cost) == (None, None)


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ("[cluster]\nnodes = 0", "cluster.nodes"),
        ("[cluster]\nnodes = 8\nrack = 2", "cluster.rack"),
        ('[network]\nrack_rate = "fast"', "network.rack_rate"),
        ("[computing]\ntflops = -1.0", "computing.tflops"),
        ("[failures]\nhours_between = 0.0", "failures.hours_between"),
        ("[stragglers]\nspread = nan", "stragglers.spread"),
        ("nonsense", "not valid TOML"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path, lines, named):
    path = tmp_path / "cluster.toml"
    path.write_text(lines)
    with pytest.raises(ConfigError, match=named):
        read_simulation(path)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        read_simulation(tmp_path / "none.toml")


def test_a_recipe_that_accumulates_has_one_row_for_it_and_sends_more_often_in_others():
    config = load_config(
        "wmt16-en-de",
        ["training.tokens_per_update=400000", "sync.mode=accumulate", "sync.accumulate=4"],
    )
    modes = {mode.mode: mode for mode in simulate(config, file_of()).modes}
    plain = by_mode(file_of())

    assert modes.keys() == plain.keys()
    for name in ("fp32", "accumulate accumulate=4"):
        assert modes[name].waiting_s == pytest.approx(4 * plain[name].waiting_s, rel=0.05)


def test_the_fastest_links_there_are_can_be_simulated():
    assert file_of(network={"rack_rate": "400gbit"}).network.rack_rate == "400gbit"


def test_more_nodes_than_can_be_simulated_are_refused():
    with pytest.raises(ValueError, match="100,000"):
        file_of(cluster={"sites": 10, "racks": 100, "nodes": 101})
    assert file_of(cluster={"sites": 10, "racks": 100, "nodes": 100})
