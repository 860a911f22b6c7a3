"""The facts of a run are derived once for a whole report, and nowhere else."""

import ast
import inspect
import sys
from collections import Counter
from functools import wraps
from pathlib import Path
from types import FunctionType

import pytest
from scenarios.simulate import write_run
from scenarios.table import SCENARIOS
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps

import dragoman
from dragoman.diagnosis.run import attempts, facts, record
from dragoman.model.size import size_of
from dragoman.report.write import write_report
from dragoman.rundir import RunDir

PACKAGE = Path(dragoman.__file__).parent


def derivations() -> dict[str, FunctionType]:
    """What `facts` derives by, all of it, with what these functions call once for a run."""
    found = {
        name: function
        for name, function in inspect.getmembers(facts, inspect.isfunction)
        if function.__module__.startswith("dragoman.diagnosis.run.")
        and name not in ("read_facts", "facts_of")
    }
    return found | {
        "lifetimes_of": attempts.lifetimes_of,
        "validated": record.validated,
        "read_tables": record.read_tables,
        "read_settings": record.read_settings,
    }


@pytest.fixture
def calls(monkeypatch):
    """Counts the calls of each derivation, by whatever module."""
    counted: Counter[str] = Counter()

    def counting(name, function):
        @wraps(function)
        def call(*arguments, **more):
            counted[name] += 1
            return function(*arguments, **more)

        return call

    modules = [m for name, m in sys.modules.items() if name.split(".")[0] == "dragoman"]
    for name, function in derivations().items():
        replacement = counting(name, function)
        for module in modules:
            for own_name, value in list(vars(module).items()):
                if value is function:
                    monkeypatch.setattr(module, own_name, replacement)
    return counted


def test_nothing_is_derived_twice_for_one_report(tmp_path, calls):
    scenario = next(s for s in SCENARIOS if s.name == "resumed five times")
    write_run(scenario.world, tmp_path / "run")
    names = list(derivations())  # counting ones by now, under the same names
    write_report(RunDir(tmp_path / "run"))

    assert {"timeline_of", "step_parts_of", "faults_of", "silences_of", "read_run"} <= set(names)
    assert calls == dict.fromkeys(names, 1)


def test_only_the_facts_call_derivations():
    """Answers, reports and comparisons read `RunFacts` and the values in it."""
    private = set(derivations()) - {"read_run"}
    importing = {
        f"{path.relative_to(PACKAGE)}: {alias.name}"
        for room in ("diagnosis", "report", "comparison", "cli")
        for path in (PACKAGE / room).rglob("*.py")
        if path.parent != PACKAGE / "diagnosis" / "run"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
        if alias.name in private and node.module.startswith("dragoman.diagnosis.run.")
    }
    assert importing == set()


def test_a_fact_is_the_same_value_each_time(tmp_path):
    run = read(write_steps(new_run(tmp_path), lambda *_: with_parts()))
    for name in ("attempts", "steps", "steps_by_rank", "step_parts", "faults", "hosts", "silences"):
        assert getattr(run, name) is getattr(run, name)


def test_the_model_has_the_size_that_its_settings_and_its_tokenizer_give(tmp_path):
    run = new_run(tmp_path)
    before = read(run)
    assert before.record.vocabulary == before.config.tokenizer.vocabulary

    facts = read(run.with_manifest())
    assert facts.record.vocabulary == facts.record.passport.vocabulary
    assert facts.record.model_size == size_of(facts.config.model, facts.record.vocabulary)
