import math
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from digits_language import RECIPE
from scenarios.simulate import write_run
from scenarios.table import SCENARIOS
from scenarios.world import Life

from dragoman.config import parse_config
from dragoman.diagnosis.answers import network
from dragoman.diagnosis.run.facts import read_facts
from dragoman.diagnosis.speed.lateness import latest, names_of_ranks
from dragoman.diagnosis.watch import LiveFindings
from dragoman.rundir import RunDir
from dragoman.telemetry.events import Evaluated, StepDone
from dragoman.telemetry.read.events import read_events
from dragoman.training.observer import RankParts


@pytest.fixture
def config(tmp_path):
    return parse_config(RECIPE.format(folder=tmp_path), "x")


def evaluation(step, validation, train_sample, bleu=20.0):
    return Evaluated(step, validation, train_sample, bleu, 40.0, "", "", False, 1.0)


def lines(observer, losses):
    """Step -> what is told; `losses` of validation and sample, and BLEU where it counts."""
    told = {}
    for number, scores in enumerate(losses, 1):
        line = observer.after_evaluation(evaluation(1000 * number, *scores))
        if line:
            told[1000 * number] = line
    return told


FALLING = [1.5 + 40 * (1000 * n) ** -0.5 for n in range(1, 13)]


def test_overfitting_is_told_once_when_it_has_begun(config):
    turning = [(loss, loss - 0.1) for loss in FALLING]
    turning += [(FALLING[-1] + 0.03 * n, FALLING[-1] - 0.1 - 0.02 * n) for n in range(1, 9)]
    told = lines(LiveFindings(config, ["a"], 0, []), turning)
    assert len(told) == 1
    ((step, line),) = told.items()
    assert line.startswith("overfitting since step 12,000: the validation loss is up by 0.")
    assert 14_000 <= step <= 18_000
    assert line.endswith("more steps make it worse")
    told = lines(
        LiveFindings(config, ["a"], 0, []), [(*each, 20.0 + n) for n, each in enumerate(turning)]
    )
    assert [line.rsplit("; ")[-1] for line in told.values()] == ["BLEU rises all the same"]


def test_a_run_that_learns_is_left_in_peace(config):
    assert lines(LiveFindings(config, ["a"], 0, []), [(loss, loss - 0.1) for loss in FALLING]) == {}


def test_a_run_that_learns_no_more_is_told_of(config):
    flat = [(1.8 + 3 * math.exp(-n / 2), 1.7 + 3 * math.exp(-n / 2)) for n in range(40)]
    told = lines(LiveFindings(config, ["a"], 0, []), flat)
    assert [line[:13] for line in told.values()] == ["fully trained"]


def test_a_run_that_rests_at_a_poor_level_is_not_called_trained(config):
    flat = [(3.0 + 3 * math.exp(-n / 2), 2.9 + 3 * math.exp(-n / 2), 5.0) for n in range(40)]
    told = lines(LiveFindings(config, ["a"], 0, []), flat)
    assert [line[:12] for line in told.values()] == ["at rest at 3"]


def test_scores_too_good_to_be_true_are_not_called_trained(config):
    flat = [(0.2 + 3 * math.exp(-n / 2), 0.2 + 3 * math.exp(-n / 2), 97.0) for n in range(40)]
    assert lines(LiveFindings(config, ["a"], 0, []), flat) == {}


def test_what_was_told_before_a_resume_is_not_told_again(config):
    flat = [evaluation(1000 * n, 1.8 + 3 * math.exp(-n / 2), 1.7) for n in range(1, 40)]
    observer = LiveFindings(config, ["a"], 0, flat)
    assert observer.after_evaluation(evaluation(40_000, 1.8, 1.7)) is None


def recorded_run(name, folder):
    """A short run of the scenario: its facts, and the events of its steps by rank."""
    world = next(scenario.world for scenario in SCENARIOS if scenario.name == name)
    few = {"training.steps": 300, "evaluation.every_steps": 100, "checkpoints.every_steps": 20}
    world = replace(world, lives=[Life(1, 300)], settings={**few, **world.settings, **few})
    truth = write_run(world, folder)
    run = RunDir(folder)
    by_rank = defaultdict(list)
    for _, rank, stamped in read_events(run, kinds=[StepDone]):
        by_rank[rank].append(stamped.event)
    return read_facts(run, read_at=truth.ended_at), by_rank


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("slow link", "network-bound"),
        ("latency of another continent", "latency-bound"),
        ("constant straggler", "straggler"),
        ("straggler host of two ranks", "straggler"),
        ("straggler that moves", "straggler"),
        ("slow data", "input-bound"),
        ("slow data now here, now there", "input-bound"),
        ("slow data on one of two hosts", "straggler"),
        ("copies hold up the steps", "compute-bound"),
        ("nothing wrong", "compute-bound"),
        ("one rank alone", "compute-bound"),
    ],
)
def test_a_run_is_judged_live_as_in_its_report(name, verdict, tmp_path):
    run, by_rank = recorded_run(name, tmp_path / "run")
    (attempt,) = run.attempts
    hosts = [attempt.hosts[rank] for rank in sorted(by_rank)]
    observer = LiveFindings(
        run.config, hosts, run.record.model_size.gradient_bytes, run.evaluations
    )
    logged = [
        observer.after_step(events[0], [RankParts.of(event) for event in events])
        for events in zip(*(by_rank[rank] for rank in sorted(by_rank)), strict=True)
    ]
    live, found = observer.speed, network.answer(run)

    assert live.verdict == found.verdict == verdict
    assert len([line for line in logged if line]) == (verdict != "compute-bound")

    # The same steps are split alike, but for their length: events are rounded to microseconds, and
    # live it is the sum of the parts.
    rows = np.flatnonzero(np.isin(run.step_parts.step, live.steps.step))
    every = np.arange(len(live.steps))
    assert len(rows) == len(every) >= 200
    own, reported = live.steps.mean(every), run.step_parts.mean(rows)
    assert own.step_s == pytest.approx(reported.step_s, abs=1e-5)
    assert own[1:] == pytest.approx(reported[1:], abs=1e-5)

    names = names_of_ranks(run.attempts)
    late = latest(live.steps, live.names, every)
    assert late == pytest.approx(latest(run.step_parts, names, rows), abs=1e-9)
    for line in filter(None, logged):
        if verdict == "straggler" and late.is_always_the_same:
            assert line.endswith(f"waits for {late.who}")
            assert late.who in found.sentence


def test_where_the_network_cannot_be_told_from_computing_neither_blames_it(tmp_path):
    run, by_rank = recorded_run("sharded", tmp_path / "run")
    hosts = list(run.attempts[0].hosts.values())
    observer = LiveFindings(run.config, hosts, run.record.model_size.gradient_bytes, [])
    for events in zip(*by_rank.values(), strict=True):
        parts = [RankParts.of(event) for event in events]
        assert observer.after_step(events[0], parts) is None

    assert np.isnan(observer.speed.steps["network_s"]).all()
    assert np.isnan(run.step_parts["network_s"]).all()
