"""Simulated runs, each written and diagnosed once a session."""

import shutil
from collections.abc import Callable, Mapping
from typing import NamedTuple

import pytest
from scenarios.scenario import Scenario
from scenarios.simulate import write_run

from dragoman.diagnosis.findings import Finding
from dragoman.diagnosis.questions import diagnose
from dragoman.diagnosis.run.facts import RunFacts, read_facts
from dragoman.rundir import RunDir


class Played(NamedTuple):
    run: RunFacts
    findings: Mapping[str, Finding]


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Scenario], Played]:
    """Plays a scenario as the first of its seeds; the events are gone afterwards."""
    known: dict[str, Played] = {}

    def play(scenario: Scenario) -> Played:
        if scenario.name not in known:
            root = tmp_path_factory.mktemp("played") / "run"
            truth = write_run(scenario.world, root)
            scenario.damage(RunDir(root))
            run = read_facts(RunDir(root), read_at=truth.ended_at + scenario.read_after_s)
            diagnosis = diagnose(run)
            shutil.rmtree(RunDir(root).events, ignore_errors=True)
            known[scenario.name] = Played(run, {**diagnosis.answers, **diagnosis.also})
        return known[scenario.name]

    return play
