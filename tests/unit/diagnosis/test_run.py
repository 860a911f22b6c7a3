"""Facts are read from the typed fields of events: all texts in them may be reworded freely."""

import dataclasses
import json
import time
import typing

import pytest
from scenarios.simulate import write_run
from scenarios.table import SCENARIOS
from unit.report.fake_run import WALL_AT, FakeRun, evaluated, started, step

from dragoman.config import parse_config
from dragoman.diagnosis.questions import diagnose
from dragoman.diagnosis.run.facts import read_facts
from dragoman.preparation import prepare
from dragoman.report.build import report_of
from dragoman.report.write import to_json
from dragoman.rundir import RunDir
from dragoman.telemetry.events import (
    KINDS,
    AttemptEnded,
    CheckpointSaved,
    EndCause,
    Incident,
    IncidentCategory,
    SensorReading,
    SensorsFound,
)
from dragoman.training.train import train

FREE_TEXT = {
    ("incident", "message"),
    ("attempt-ended", "reason"),
    ("sensors-found", "absent"),
    ("sensors-found", "about"),
}
HEADS = tuple(f'{{"kind":"{kind}"' for kind, _ in FREE_TEXT)
IDENTIFIERS = {
    *{("attempt-started", name) for name in ("host", "device")},
    *{("evaluation", name) for name in ("bleu_signature", "chrf_signature", "samples")},
    ("checkpoint", "folder"),
    ("attempt-ended", "culprit_host"),
    *{("sensors-found", name) for name in ("host", "present")},
    ("clock", "host"),
    *{("device", name) for name in ("device", "name", "precision")},
    ("sync-chosen", "settings"),
    *{("forecast", name) for name in ("hosts", "currency")},
}
PLAYED = [
    *("rolled back", "skipped updates", "resumed five times", "hung and ended", "capped port"),
    *("ended by patience", "busy CPU on one host", "no evaluation", "went on with one host fewer"),
]

ENDS = {
    "finished": ("", "steps", "epochs", "hours", "patience"),
    "preempted": ("", "signal", "notice"),
    "failed": ("", "error", "lost-rank", "diverged", "out-of-memory", "weights-differ"),
}


def test_every_cause_of_an_end_is_tried():
    assert {cause for causes in ENDS.values() for cause in causes} == set(typing.get_args(EndCause))


def test_every_text_of_an_event_is_either_free_or_an_identifier():
    texts = {
        (name, field.name)
        for name, kind in KINDS.items()
        for field in dataclasses.fields(kind)
        if str in _types(typing.get_type_hints(kind)[field.name])
    }
    numbers_by_name = {
        *{("step", name) for name in ("parts_s", "traffic_bytes", "counts")},
        *{("sensors-found", "link_bytes_per_s"), ("sensors", "values")},
        ("sync-chosen", "exposed_s"),
        *{
            ("forecast", name)
            for name in ("host_prices", "sent_bytes_per_s", "received_bytes_per_s")
        },
    }
    assert texts == FREE_TEXT | IDENTIFIERS | numbers_by_name


@pytest.mark.parametrize("name", PLAYED)
def test_rewording_the_messages_of_a_run_changes_only_what_is_quoted(tmp_path, name):
    scenario = next(scenario for scenario in SCENARIOS if scenario.name == name)
    truth = write_run(scenario.world, tmp_path / "run")
    check_rewording(RunDir(tmp_path / "run"), truth.ended_at + scenario.read_after_s)


@pytest.mark.parametrize("category", typing.get_args(IncidentCategory))
def test_rewording_an_incident_changes_only_what_is_quoted(tmp_path, category):
    """The steps go back after it, so that a rollback is also a fault."""
    fields = {
        "rollback": {"rollback_step": 2, "rate_factor": 0.5},
        "out-of-memory": {"ranks": (1,), "pieces": 4},
    }
    said = Incident(4, category, "rank 1 on host-1 ran out of memory", **fields.get(category, {}))
    run = recorded_run(tmp_path, said, AttemptEnded(4, "finished", "4 steps are done", "steps"))
    check_rewording(run.directory, WALL_AT + 100.0)


@pytest.mark.parametrize(("state", "cause"), [(s, c) for s, causes in ENDS.items() for c in causes])
def test_rewording_an_end_changes_only_what_is_quoted(tmp_path, state, cause):
    ended = AttemptEnded(4, state, "rank 1 on host-1 is gone\n  it stood there", cause, 1, "host-1")
    run = recorded_run(tmp_path, Incident(4, "other", "the disk is full"), ended)
    check_rewording(run.directory, WALL_AT + 100.0)


def test_rewording_what_a_real_training_run_recorded_changes_only_what_is_quoted(digits, tmp_path):
    config = parse_config(digits.read_text(), "x.toml", ["training.steps=8"])
    prepare(config)
    run = RunDir(tmp_path / "run")
    train(config, run)
    check_rewording(run, read_at=time.time())


def recorded_run(root, incident, ended):
    run = FakeRun(root / "run").with_manifest()
    sensors = SensorsFound(
        "host-0",
        ["cpu", "network"],
        {"gpu": "no driver is loaded"},
        {"cpu": "8 logical cores", "network/eth0": "1000 Mbit/s"},
        cores=8,
        link_bytes_per_s={"eth0": 1.25e8},
    )
    for rank in (0, 1):
        events = [
            (0.0, started(rank=rank, ranks=2)),
            (0.5, dataclasses.replace(sensors, host=f"host-{rank}")),
            *(
                (float(n), step(n, traffic_bytes={"sent": 1e6, "received": 1e6}))
                for n in range(1, 5)
            ),
            *((n + 0.1, SensorReading({"cpu/busy_percent": 90.0})) for n in range(1, 5)),
            (2.2, CheckpointSaved(2, "step-00000002", 100, 0.1)),
            (4.2, incident),
            *((n + 3.0, step(n)) for n in (3, 4)),
            (9.0, evaluated(4)),
            (9.5, ended),
        ]
        run.with_events(sorted(events, key=lambda event: event[0]), rank=rank)
    return run


def check_rewording(run, read_at):
    before = report(run, read_at)
    wordings = reword(run)
    after = report(run, read_at)

    assert wordings, "nothing was reworded"
    for text in sorted(wordings, key=len, reverse=True):
        before = before.replace(quoted(text), quoted(wordings[text]))
        before = before.replace(quoted(text.partition("\n")[0]), quoted(wordings[text]))
    assert json.loads(after) == json.loads(before)


def report(run, read_at):
    facts = read_facts(run, read_at)
    return to_json(report_of(facts, diagnose(facts)))


def reword(run):
    """Replaces every free text in all event files, equal ones alike; returns old -> new."""
    wordings: dict[str, str] = {}

    def other(value):
        if isinstance(value, dict):
            return {name: other(text) for name, text in value.items()}
        return wordings.setdefault(value, f"wording {chr(ord('a') + len(wordings))}")

    for path in sorted(run.events.glob("*.jsonl")):
        lines = path.read_text(encoding="utf-8").splitlines()
        for place, line in enumerate(lines):
            if line.startswith(HEADS):
                content = json.loads(line)
                texts = {name for kind, name in FREE_TEXT if kind == content["kind"]}
                content |= {name: other(content[name]) for name in texts}
                lines[place] = json.dumps(content)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return wordings


def quoted(text):
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _types(hint):
    return {hint} | {inner for argument in typing.get_args(hint) for inner in _types(argument)}
