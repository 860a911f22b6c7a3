"""Runs whose truth is known: the diagnosis says it, of each, whatever the noise.

The scenarios are in benchmarks/scenarios; `make bench-diagnosis` prints them as a table.
"""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scenarios.learning import below, power_law
from scenarios.lines import lines_of
from scenarios.pace import pace_of
from scenarios.recipe import config_of
from scenarios.scenario import Quantity, Scenario, play
from scenarios.simulate import write_run
from scenarios.table import SCENARIOS
from scenarios.world import GBIT_S, Learning, Life, Link, Machines, Work, World, always, only

from dragoman.rundir import RunDir
from dragoman.shards.passport import Passport
from dragoman.telemetry.events import SensorReading, Stamped, StepDone, from_line, to_line
from dragoman.telemetry.read.reader import read_tables

LOSS = power_law(1.2, 0.9, 0.4)
LEARNING = Learning(LOSS, below(LOSS, 0.1))
FEW = {
    "training.steps": 200,
    "evaluation.every_steps": 50,
    "checkpoints.every_steps": 50,
}

PLAYED = [
    pytest.param(
        scenario, seed, id=f"{scenario.name}-{seed + 1}", marks=pytest.mark.cluster if seed else ()
    )
    for scenario in SCENARIOS
    for seed in range(scenario.seeds)
]


@pytest.mark.parametrize(("scenario", "seed"), PLAYED)
def test_the_diagnosis_says_what_is_true(scenario: Scenario, seed: int, tmp_path: Path) -> None:
    outcome = play(scenario, tmp_path / "run", seed)

    assert not outcome.wrong, "\n".join([scenario.truth, *outcome.wrong])


def test_every_scenario_has_a_name_of_its_own_and_both_halves_are_large() -> None:
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)
    halves = Counter(scenario.half for scenario in SCENARIOS)
    assert min(halves.values()) >= 24


def test_a_wrong_verdict_a_false_alarm_and_a_wrong_figure_are_noticed(tmp_path: Path) -> None:
    slow = next(scenario for scenario in SCENARIOS if scenario.name == "constant straggler")
    other = replace(
        slow,
        verdicts={"network": "compute-bound"},
        says={"padding": [], "devices": ["unicorns"]},
        quantities=[
            Quantity(
                "step-time",
                "mean step",
                lambda truth: 2 * truth.mean_step_s,
                0.1,
            )
        ],
    )

    wrong = play(other, tmp_path / "run").wrong

    found = sorted(line.partition(":")[0] for line in wrong)
    assert found == ["devices", "network", "padding", "step-time", "stragglers"]


def test_a_wrong_host_and_too_narrow_an_interval_are_noticed(tmp_path: Path) -> None:
    slow = next(scenario for scenario in SCENARIOS if scenario.name == "constant straggler")
    other = replace(
        slow,
        blames={"stragglers": ["node-b|node-x"]},
        spares={"stragglers": ["node-c"]},
        alike={"stragglers": ["node-c", "node-d"]},
        quantities=[Quantity("step-time", "mean step", lambda truth: truth.mean_step_s, holds=1.0)],
    )

    wrong = play(other, tmp_path / "run").wrong

    assert [line.partition(":")[0] for line in wrong] == ["stragglers"] * 3 + ["step-time"]


def test_lines_are_those_that_telemetry_writes() -> None:
    wall, monotonic = np.array([1.7e9, 1.7e9 + 1.2345678]), np.array([5.0, 6.2345678])
    columns = {
        "step": np.array([1, 2]),
        "epoch": np.array([0.1, 0.2]),
        "loss": np.array([1 / 3, np.nan]),
        "tokens": np.array([100, 101]),
        "learning_rate": np.array([1e-7, 1e-4]),
        "gradient_norm": np.array([np.inf, 0.5]),
        "updated": np.array([False, True]),
        "step_s": np.array([0.12345678, 1.0]),
        "parts_s": {"data": np.array([1e-6, 0.5]), "backward": np.array([0.1, 0.2])},
        "traffic_bytes": {"sent": np.array([5.0, 6.0])},
        "counts": {},
        "memory_peak_bytes": np.array([1e9, 2e9]),
    }
    readings = {"network/eth0/sent_bytes_total": np.array([1.0, 2.5]), "cpu/percent": wall}

    def written(kind, fields):
        return [
            json.loads(to_line(Stamped(w, m, kind(*(_row(values, n) for values in fields)))))
            for n, (w, m) in enumerate(zip(wall.tolist(), monotonic.tolist(), strict=True))
        ]

    steps = lines_of(StepDone, wall, monotonic, columns)
    assert list(map(json.loads, steps)) == written(StepDone, columns.values())
    sensors = lines_of(SensorReading, wall, monotonic, {"values": readings})
    assert list(map(json.loads, sensors)) == written(SensorReading, [readings])


def _row(values: object, place: int) -> object:
    if isinstance(values, dict):
        return {name: _row(inner, place) for name, inner in values.items()}
    assert isinstance(values, np.ndarray)
    return values[place].item()


def test_a_simulated_run_holds_together(tmp_path: Path) -> None:
    """What the simulation writes obeys the physics that it claims, seen from the files alone."""
    world = World(
        LEARNING,
        [Life(1, 200)],
        FEW,
        machines=Machines(("a", "b", "c"), device="cpu"),
        link=Link(always(GBIT_S), 1000),
        work=Work(slowed_s=only(1, 0.3)),
    )
    truth = write_run(world, tmp_path / "run")
    run = RunDir(tmp_path / "run")
    tables = read_tables(run)
    steps = tables[StepDone]

    assert tables.unread_lines == 0
    assert len(steps) == 3 * 200
    parts = {name: part.reshape(3, 200) for name, part in steps.groups["parts_s"].items()}
    step_s = steps["step_s"].reshape(3, 200)
    np.testing.assert_allclose(np.sum(list(parts.values()), axis=0), step_s, atol=1e-4)
    # From the end of one small message, which all leave together, to that of the next.
    after = (parts["checkpoint"] + parts["optimizer"] + parts["rest"])[:, :-1]
    ready = after + sum(parts[name][:, 1:] for name in ("data", "forward", "backward"))
    done = ready + parts["communication"][:, 1:]
    agreed = done + parts["agreement"][:, 1:]
    followed = np.isin(
        np.arange(1, 200), FEW["evaluation.every_steps"] * np.arange(1, 4), None, True
    )
    np.testing.assert_allclose(np.ptp(agreed[:, followed], axis=0), 0, atol=1e-3)
    assert (ready.argmax(axis=0) == 1).mean() > 0.95  # the straggler
    network = (done.max(axis=0) - ready.max(axis=0))[followed]
    assert network.mean() == pytest.approx(truth.network_s, rel=0.01)
    assert np.ptp(ready, axis=0)[followed].mean() == pytest.approx(truth.straggling_s, rel=0.01)
    # Ranks leave the all-reduce at moments of their own.
    assert (done.max(axis=0) - done.min(axis=0))[followed].mean() > 0.3 * truth.network_s

    readings = tables[SensorReading]
    sent = readings.groups["values"]["network/eth0/sent_bytes_total"][readings["rank"] == 0]
    counted = steps.groups["traffic_bytes"]["sent"][steps["rank"] == 0].sum()
    assert sent[-1] - sent[0] == pytest.approx(counted, rel=0.02)
    per_s = np.diff(sent) / np.diff(readings["monotonic_at"][readings["rank"] == 0])
    assert 0.95 * GBIT_S < per_s.max() < 1.001 * GBIT_S  # all that the link can carry, and no more
    passport = json.loads(run.manifest.read_text())["data"]
    assert Passport.model_validate(passport).splits["train"].pairs_kept == 4_524_868
    for path in run.events.iterdir():
        assert all(from_line(line) for line in path.read_text().splitlines())


def test_a_gpu_that_waits_shows_100_percent_and_less_power(tmp_path: Path) -> None:
    slow, fast = (
        World(LEARNING, [Life(1, 200)], FEW, link=Link(always(rate * GBIT_S))) for rate in (0.2, 25)
    )
    shown = {}
    for name, world in (("slow", slow), ("fast", fast)):
        write_run(world, tmp_path / name)
        values = read_tables(RunDir(tmp_path / name))[SensorReading].groups["values"]
        shown[name] = [np.median(values[f"gpu/0/{v}"]) for v in ("utilization_percent", "power_w")]

    assert shown["slow"][0] == shown["fast"][0] == 100
    assert shown["slow"][1] < 0.6 * shown["fast"][1]


def test_network_time_beside_backward_is_not_exposed() -> None:
    def exposed(overlap: float) -> float:
        world = World(LEARNING, [Life(1, 200)], FEW, link=Link(always(5 * GBIT_S), overlap=overlap))
        pace = pace_of(world, config_of(world), world.lives[0], np.random.default_rng(1))
        return float(pace.exposed_s.mean() / pace.network_s.mean())

    assert exposed(0.0) == pytest.approx(1.0)
    assert exposed(0.6) == pytest.approx(0.4)
    assert exposed(1.0) == pytest.approx(0.0, abs=1e-3)


def test_the_peak_rates_are_flat_at_both_ends_of_a_capped_hop(tmp_path: Path) -> None:
    world = World(
        LEARNING,
        [Life(1, 50)],
        FEW | {"training.steps": 50},
        machines=Machines(("a", "b", "c")),
        link=Link(always(10 * GBIT_S), 10_000, send_rate=only(1, GBIT_S, 10 * GBIT_S)),
    )
    write_run(world, tmp_path / "run")
    readings = read_tables(RunDir(tmp_path / "run"))[SensorReading]

    def highest(rank: int, direction: str) -> float:
        peaks = readings.groups["values"][f"network/eth0/{direction}_peak_bytes_per_s"]
        return float(np.median(peaks[readings["rank"] == rank])) / GBIT_S

    assert highest(1, "sent") == pytest.approx(1, rel=0.05)
    assert highest(2, "received") == pytest.approx(1, rel=0.05)
    for rank, direction in ((0, "sent"), (1, "received"), (2, "sent"), (0, "received")):
        assert highest(rank, direction) > 1.5
