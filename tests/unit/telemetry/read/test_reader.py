import math
import random
import struct
from dataclasses import replace

import numpy as np
import pytest
from unit.telemetry.event_lines import PARTS, started, step, write

from dragoman.errors import UserError
from dragoman.rundir import RunDir
from dragoman.telemetry.events import (
    FORMAT,
    KINDS,
    AttemptEnded,
    AttemptStarted,
    ClockOffset,
    Evaluated,
    Incident,
    SensorReading,
    StepDone,
)
from dragoman.telemetry.read import reader
from dragoman.telemetry.read.events import read_events
from dragoman.telemetry.read.reader import read_tables


@pytest.fixture
def run(tmp_path):
    return RunDir(tmp_path)


def test_events_of_all_ranks_and_attempts_become_columns(run):
    sample = {"source": "a", "translation": "b", "reference": "c"}
    evaluated = Evaluated(2, 2.5, None, 31.5, None, "", "", True, 1.0, [sample])
    write(run, 1, 0, [started(1, 0), step(1), step(2), evaluated, step(3)])
    write(run, 1, 1, [started(1, 1), step(1), step(2), Incident(2, "other", "a „quoted“ one")])
    write(run, 2, 0, [started(2, 0), step(3, loss=2.5), AttemptEnded(3, "finished", "done")])
    found = read_tables(run)
    steps = found[StepDone]
    assert len(steps) == 6
    assert steps["attempt"].tolist() == [1, 1, 1, 1, 1, 2]
    assert steps["rank"].tolist() == [0, 0, 0, 1, 1, 0]
    assert steps["step"].tolist() == [1, 2, 3, 1, 2, 3]
    assert steps["loss"].tolist() == [3.25] * 5 + [2.5]
    assert steps["updated"].dtype == bool
    assert list(steps.groups["parts_s"]) == list(PARTS)
    assert steps.groups["parts_s"]["rest"].tolist() == [5e-05] * 6
    assert found[Evaluated]["bleu"].tolist() == [31.5]
    assert np.isnan(found[Evaluated]["chrf"]).all()
    assert found[Evaluated]["samples"][0] == [sample]
    assert found[Incident]["message"].tolist() == ["a „quoted“ one"]
    assert found[AttemptStarted]["host"].tolist() == ["host-0", "host-1", "host-0"]
    assert found.unread_lines == 0
    by_rank = [(attempt, rank, len(own)) for attempt, rank, own in steps.by_rank()]
    assert by_rank == [(1, 0, 3), (1, 1, 2), (2, 0, 1)]
    assert steps.where(steps["step"] == 2)["rank"].tolist() == [0, 1]


def test_a_run_without_events_has_empty_tables_of_every_kind(run):
    found = read_tables(run)
    assert {len(found[kind]) for kind in KINDS.values()} == {0}
    assert found[StepDone]["loss"].dtype == np.float64
    assert found[StepDone]["at"].tolist() == []


def test_doubles_come_back_to_the_last_bit(run):
    chance = random.Random(1)
    losses = [struct.unpack("d", chance.randbytes(8))[0] for _ in range(2000)]
    losses = [loss for loss in losses if math.isfinite(loss)]
    write(run, 1, 0, [step(n, loss=loss) for n, loss in enumerate(losses)])
    found = read_tables(run)
    assert found[StepDone]["loss"].tolist() == losses
    assert found.unread_lines == 0


def test_torn_lines_unknown_kinds_and_foreign_lines_are_counted_and_skipped(run):
    path = write(run, 1, 0, [started(1, 0), *(step(n) for n in range(400)), step(400)])
    lines = path.read_bytes().split(b"\n")
    lines[200] = lines[200][:57]
    lines.insert(300, b'{"kind":"future","wall_at":1,"monotonic_at":1,"step":9}')
    lines.insert(301, b"\x00\x00\xff")
    lines.insert(302, b"")
    path.write_bytes(b"\n".join(lines)[:-20])
    found = read_tables(run)
    assert found[StepDone]["step"].tolist() == [n for n in range(400) if n != 199]
    assert found.unread_lines == 4
    assert len(found[AttemptStarted]) == 1
    read = [r.stamped.event.step for r in read_events(run) if isinstance(r.stamped.event, StepDone)]
    assert found[StepDone]["step"].tolist() == read


def test_a_file_that_is_being_written_may_end_anywhere(run):
    path = write(run, 1, 0, [step(n) for n in range(3)])
    path.write_bytes(path.read_bytes()[:-1])  # the last line is whole but for its end
    assert read_tables(run)[StepDone]["step"].tolist() == [0, 1, 2]


def test_the_size_of_a_chunk_changes_nothing(run, monkeypatch):
    events = [
        step(n, updated=n % 7 > 0) if n % 3 else Incident(n, "other", "x") for n in range(200)
    ]
    write(run, 1, 0, events)
    whole = read_tables(run)
    for size in (1, 100, 999):
        monkeypatch.setattr(reader, "CHUNK_BYTES", size)
        found = read_tables(run)
        for kind in (StepDone, Incident):
            for name, values in whole[kind].columns.items():
                np.testing.assert_array_equal(values, found[kind][name])


def test_parts_that_only_some_steps_have_stand_where_they_happened(run):
    rare = {"data": 0.001, "exposed communication": 0.25, "evaluation": 2.0, "rest": 0.01}
    events = [step(n, parts=rare if n % 100 == 99 else PARTS) for n in range(1000)]
    write(run, 1, 0, events)
    parts = read_tables(run)[StepDone].groups["parts_s"]
    assert list(parts) == ["data", "exposed communication", "evaluation", "rest"]
    assert np.flatnonzero(~np.isnan(parts["evaluation"])).tolist() == list(range(99, 1000, 100))
    assert not np.isnan(parts["rest"]).any()


def test_sensor_readings_with_devices_that_come_and_go(run):
    readings = [
        SensorReading({"cpu/percent": 5, "network/eth0/sent_bytes_total": 2**53 - 1}),
        SensorReading({"cpu/percent": 7.5}),
        SensorReading({"cpu/percent": 7.5, "gpu/1/power_w": 250.5}),
    ]
    write(run, 1, 0, readings)
    values = read_tables(run)[SensorReading].groups["values"]
    assert values["cpu/percent"].tolist() == [5, 7.5, 7.5]
    assert values["network/eth0/sent_bytes_total"][0] == 2**53 - 1
    assert np.isnan(values["network/eth0/sent_bytes_total"][1:]).all()
    assert values["gpu/1/power_w"][2] == 250.5


def test_all_ranks_are_put_on_the_clock_of_rank_0(run):
    # Rank 1's monotonic clock is 500 ahead, and its wall clock an hour.
    offset = ClockOffset("host-1", 3600.0, 500.0, 0.001)
    write(run, 1, 0, [started(1, 0), step(1)], begin=10.0, wall_ahead=1e9)
    write(run, 1, 1, [offset, step(1)], begin=510.0, wall_ahead=1e9 - 500 + 3600)
    at = read_tables(run)[StepDone]["at"]
    assert at.tolist() == pytest.approx([1e9 + 11, 1e9 + 11])


def test_clocks_that_were_never_compared_are_believed(run):
    write(run, 1, 0, [step(1)], begin=10.0)
    write(run, 1, 1, [step(1)], begin=700.0, wall_ahead=5e8)
    assert read_tables(run)[StepDone]["at"].tolist() == pytest.approx([1e9 + 10, 5e8 + 700])


def test_whoever_waits_is_told_of_every_byte(run, monkeypatch):
    paths = [write(run, 1, rank, [step(n) for n in range(100)]) for rank in range(2)]
    monkeypatch.setattr(reader, "CHUNK_BYTES", 1000)
    told = []
    read_tables(run, told.append)
    assert len(told) > 10
    assert sum(told) == sum(path.stat().st_size for path in paths)


def test_a_run_of_a_newer_format_is_refused_in_one_sentence_with_both_versions(run):
    newer = replace(started(1, 0), format=FORMAT + 1)
    write(run, 1, 0, [newer, step(1)])
    with pytest.raises(UserError) as refused:
        read_tables(run)
    assert str(refused.value) == (
        f"{run.root} was recorded by a newer version (event format {FORMAT + 1}; this version "
        f"reads up to {FORMAT}); update Dragoman to read it"
    )


def test_null_where_a_float_must_be_is_not_a_number(run):
    write(run, 1, 0, [step(n, loss=math.nan if n % 2 else 3.0) for n in range(40)])
    found = read_tables(run)
    assert found.unread_lines == 0
    assert np.isnan(found[StepDone]["loss"]).tolist() == [n % 2 == 1 for n in range(40)]


def test_lines_with_a_number_for_a_text_are_passed_over(run):
    path = write(run, 1, 0, [started(1, 0), step(1), AttemptEnded(1, "failed", "cause")])
    path.write_text(path.read_text().replace('"cause"', "NaN", 1).replace('"host-0"', "NaN"))
    found = read_tables(run)
    assert [len(found[kind]) for kind in (AttemptStarted, StepDone, AttemptEnded)] == [0, 1, 0]
    assert found.unread_lines == 2


@pytest.mark.parametrize("damage", ["-Infinity", "Infinity", "NaN", "-1e308"])
def test_a_damaged_time_leaves_the_others_readable(run, damage):
    for rank in range(2):
        events = [ClockOffset("host", 0.0, 0.0, 0.001), *(step(n) for n in range(1, 4))]
        path = write(run, 1, rank, events)
        path.write_text(path.read_text().replace('"monotonic_at":0.0', f'"monotonic_at":{damage}'))
    found = read_tables(run)
    assert found.unread_lines == 0
    assert found[StepDone]["monotonic_at"].tolist() == [1, 2, 3, 1, 2, 3]
