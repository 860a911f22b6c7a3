import json
from dataclasses import replace
from pathlib import Path

import pytest
from unit.diagnosis.foreseen_run import forecast
from unit.report.fake_run import MANIFEST, WALL_AT, FakeRun, evaluated, started, step

from dragoman.config import load_config
from dragoman.diagnosis.run.facts import facts_of
from dragoman.diagnosis.run.record import read_run
from dragoman.errors import UserError
from dragoman.model.size import size_of
from dragoman.rundir import RunDir, write_json
from dragoman.telemetry.events import (
    Incident,
    SensorReading,
    StepDone,
)


@pytest.fixture
def run(tmp_path: Path) -> FakeRun:
    return FakeRun(tmp_path / "run")


def test_torn_lines_and_unknown_kinds_are_counted_and_passed_over(run):
    run.with_events([(0.0, started()), (1.0, step(1)), (2.0, step(2))])
    path = run.directory.events_of(1, 0)
    path.write_text(
        path.read_text()
        + json.dumps({"kind": "from-the-future", "wall_at": 1.0, "monotonic_at": 900.0})
        + '\n{"kind":"step","wall_at":17'
    )
    record = read_run(run.directory, read_at=WALL_AT)

    assert record.tables[StepDone]["step"].tolist() == [1, 2]
    assert any("2 lines are torn or of a kind" in sentence for sentence in record.unreadable)


def test_events_with_a_field_of_another_type_are_counted_and_passed_over(run):
    events = [Incident(1, "other", "odd"), evaluated(1), Incident(2, "other", "even"), evaluated(2)]
    run.with_events([(0.0, started()), *((float(n), event) for n, event in enumerate(events, 1))])
    path = run.directory.events_of(1, 0)
    text = path.read_text().replace('"odd"', '["a", "list"]')
    path.write_text(text.replace('"samples":[', '"samples":[7,', 1))
    record = read_run(run.directory, read_at=WALL_AT)
    found = facts_of(record)

    assert found.attempts[0].incidents == [Incident(2, "other", "even")]
    assert [evaluation.step for evaluation in found.evaluations] == [2]
    assert any("2 lines are torn or of a kind" in sentence for sentence in record.unreadable)


def test_a_folder_that_is_no_run_is_refused_in_one_sentence(tmp_path):
    with pytest.raises(UserError, match="is not a run directory"):
        read_run(RunDir(tmp_path), read_at=0.0)


def test_a_name_with_a_flipped_byte_costs_that_line_only(run):
    readings = [(float(n), SensorReading({"rank/0/cpu_percent": 50.0})) for n in (1, 2, 3)]
    run.with_events([(0.0, started()), *readings, (4.0, step(1))])
    path = run.directory.events_of(1, 0)
    path.write_bytes(path.read_bytes().replace(b"cpu_percent", b"cpu_perc\xd8nt", 1))
    record = read_run(run.directory, read_at=WALL_AT)

    assert len(record.tables[SensorReading]) == 2
    assert record.tables[StepDone]["step"].tolist() == [1]


def test_a_part_of_the_manifest_that_is_damaged_costs_no_other(run):
    manifest = {**MANIFEST, "data": {"key": 7}}
    write_json(run.directory.manifest, manifest)
    record = read_run(run.directory, read_at=WALL_AT)

    assert record.passport is None
    assert [member.host for member in record.members[1]] == ["host-0", "host-1"]
    assert len(record.unreadable) == 1


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"heartbeat_at": "soon"}'])
def test_a_damaged_status_is_named_and_stops_nothing(run, text):
    run.directory.status.write_text(text)
    record = read_run(run.directory, read_at=WALL_AT)

    assert record.heartbeat_at is None
    assert len(record.unreadable) == 1
    assert str(run.directory.status) in record.unreadable[0]


def test_checkpoints_are_listed_oldest_first_with_their_sizes(run):
    run.with_checkpoint(20, a=3).with_checkpoint(10, a=1, b=2)
    (run.directory.checkpoints / "best").symlink_to("step-00000010")
    record = read_run(run.directory, read_at=WALL_AT)

    assert [folder.file_bytes for folder in record.checkpoints] == [{"a": 1, "b": 2}, {"a": 3}]
    assert record.best_checkpoint == "step-00000010"


def test_the_size_of_the_model_is_as_set_until_the_vocabulary_is_known(run):
    planned = read_run(run.directory, read_at=WALL_AT)
    write_json(run.directory.manifest, {"data": MANIFEST["data"] | {"vocabulary": 777}})
    known = read_run(run.directory, read_at=WALL_AT)

    assert planned.vocabulary == planned.config.tokenizer.vocabulary
    assert known.vocabulary == 777
    for record in (planned, known):
        assert record.model_size == size_of(record.config.model, record.vocabulary)


def test_prices_of_the_host_list_count_before_that_of_the_recipe(run):
    made = replace(forecast(ranks=2), host_prices={"host-0": 1.0, "host-1": 4.0})
    run.with_events([(0.0, started()), (0.5, made), (1.0, step(1))])
    cost = read_run(run.directory, read_at=WALL_AT).config.cost
    assert cost.host_per_hour == 2.5  # of each host, in the mean


def test_without_prices_in_the_host_list_that_of_the_recipe_counts(run):
    run.with_events([(0.0, started()), (0.5, forecast(ranks=2)), (1.0, step(1))])
    cost = read_run(run.directory, read_at=WALL_AT).config.cost
    assert cost == load_config(run.directory.config).cost
