import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scenarios.simulate import write_run
from scenarios.table import SCENARIOS

from dragoman.rundir import RunDir
from dragoman.telemetry.events import (
    KINDS,
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    ClockOffset,
    DeviceFound,
    Evaluated,
    EventsDropped,
    ForecastMade,
    Incident,
    ScheduleExtended,
    SensorReading,
    SensorsFound,
    Stamped,
    StepDone,
    SyncChosen,
    from_line,
    to_line,
)

ONE_OF_EACH = [
    AttemptStarted(1, 0, 2, "node1", "cpu", 1),
    StepDone(7, 0.5, 3.25, 100, 1e-3, 0.7, True, 0.5, {"forward": 0.3, "rest": 0.2}),
    Evaluated(7, 2.5, None, 31.5, 50.0, "b", "c", True, 1.0, [{"source": "ein „Wort“"}]),
    CheckpointSaved(7, "step-00000007", 1000, 0.5),
    Incident(7, "other", 'a "quoted" thing'),
    AttemptEnded(7, "finished", "steps are done"),
    SensorsFound("node1", ["processor"], {"gpu": "no driver"}, {"cpu": "2 cores"}),
    SensorReading({"cpu/percent": 12.5, "network/eth0/sent_bytes_total": 10}),
    ClockOffset("node1", -0.25, 12.5, 0.001),
    DeviceFound("cuda:0", "a GPU", "bf16", 3.1e14, None),
    SyncChosen(3, {"mode": "local", "local_steps": 8}, 1.25e7, 1e-4, 1.8, {"fp32": 19.5}),
    ForecastMade(
        *(2, ["node1", "node2"], 1700000000.0, 2.1, 1.9, 2.4, 1.5, 0.6, 2.4e8, 3.5, 14.0, "USD"),
        *({"node1": 2.0, "node2": 2.0}, {"node1": 1.2e8, "node2": 1.2e7}, {"node1": 1.2e8}),
    ),
    ScheduleExtended(20_000, 40_000, 1e-4, 0.0),
    EventsDropped(3, 5),
]


def step(number, **changes):
    return StepDone(number, 0.5, 3.25, 100, 1e-3, 0.7, True, 0.5, **changes)


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda event: type(event).__name__)
def test_an_event_survives_the_way_to_a_line_and_back(event):
    stamped = Stamped(12.5, 3.5, event)
    assert from_line(to_line(stamped)) == stamped


def test_every_kind_is_tried_above():
    assert {type(event) for event in ONE_OF_EACH} == set(KINDS.values())


def test_times_are_kept_to_the_microsecond_and_losses_to_the_last_bit():
    loss, norm = 2.0000000000000004, 1 / 3
    event = StepDone(1, 1 / 3, loss, 100, 1e-3 / 7, norm, True, 1 / 3, {"data": 1 / 7})
    line = to_line(Stamped(1700000000.1234567, 5.00000051, event))
    stamped = from_line(line)
    assert (stamped.event.loss, stamped.event.gradient_norm) == (loss, norm)
    assert stamped.event.learning_rate == 1e-3 / 7
    assert (stamped.event.step_s, stamped.event.parts_s) == (0.333333, {"data": 0.142857})
    assert (stamped.wall_at, stamped.monotonic_at) == (1700000000.123457, 5.000001)
    assert " " not in line


def test_unknown_kinds_fields_and_torn_lines_are_skipped():
    line = to_line(Stamped(1.0, 2.0, step(7)))
    assert from_line(line.replace('"kind":"step"', '"kind":"future"')) is None
    assert from_line(line[:40]) is None
    assert from_line(line.replace('"epoch"', '"later":1,"epoch"')) is not None
    assert from_line("[1]") is None


def test_lines_of_older_runs_are_read():
    content = json.loads(to_line(Stamped(1.0, 2.0, step(7))))
    del content["parts_s"]
    assert from_line(json.dumps(content)).event == step(7)


def strict(line):
    """What any reader of JSON makes of a line: NaN and Infinity are no JSON."""
    return json.loads(line, parse_constant=pytest.fail)


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_null_in_a_line_and_not_a_number_after_it(odd):
    event = StepDone(1, 0.5, odd, 100, 1e-3, odd, False, odd, {"data": odd, "rest": 0.5})
    line = to_line(Stamped(1.0, 2.0, event))
    assert strict(line)["loss"] is None
    read = from_line(line).event
    assert math.isnan(read.loss)
    assert math.isnan(read.gradient_norm)
    assert math.isnan(read.step_s)
    assert read.parts_s == {"rest": 0.5}


def test_tokens_of_format_1_for_what_is_not_finite_are_read():
    line = to_line(Stamped(1.0, 2.0, step(7))).replace("3.25", "NaN").replace("0.7", "-Infinity")
    read = from_line(line).event
    assert math.isnan(read.loss)
    assert read.gradient_norm == -math.inf


def test_every_line_of_a_diverged_run_is_strict_json(tmp_path):
    (scenario,) = [s for s in SCENARIOS if s.name == "diverged to no number"]
    run = RunDir(tmp_path / "run")
    write_run(scenario.world, run.root)
    texts = [path.read_text() for path in run.events.iterdir()]
    contents = [strict(line) for text in texts for line in text.splitlines()]
    assert any(content.get("loss", 0) is None for content in contents)


def test_numbers_of_numpy_are_written_and_other_objects_refused():
    assert '"loss":2.5,' in to_line(Stamped(1.0, 2.0, replace(step(7), loss=np.float64(2.5))))
    with pytest.raises(TypeError):
        to_line(Stamped(1.0, 2.0, replace(step(7), loss=object())))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("step", 10**30),
        ("step", 1.5),
        ("step", True),
        ("loss", "3"),
        ("updated", 1),
        ("step", None),
        ("parts_s", {"data": "x"}),
        ("wall_at", None),
    ],
)
def test_values_of_another_type_are_not_read(field, value):
    content = json.loads(to_line(Stamped(1.0, 2.0, step(7)))) | {field: value}
    assert from_line(json.dumps(content)) is None


def test_half_a_character_is_not_read():
    line = to_line(Stamped(1.0, 2.0, Incident(7, "other", "MESSAGE")))
    assert from_line(line.replace("MESSAGE", "\\u00e4")).event.message == "ä"
    assert from_line(line.replace("MESSAGE", "\\ud800")) is None
