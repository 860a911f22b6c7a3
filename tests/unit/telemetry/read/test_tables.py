import json
import math
import random
import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.rundir import RunDir
from dragoman.telemetry.events import (
    KINDS,
    AttemptEnded,
    AttemptStarted,
    ClockOffset,
    Evaluated,
    Incident,
    SensorReading,
    Stamped,
    StepDone,
    to_line,
)
from dragoman.telemetry.read import parsing, tables
from dragoman.telemetry.read.columns import merge_order
from dragoman.telemetry.read.events import read_events
from dragoman.telemetry.read.parsing import one_by_one, parse
from dragoman.telemetry.read.tables import read_tables

PARTS = {"data": 0.001, "exposed communication": 0.25, "rest": 5e-05}


def step(number, loss=3.25, norm=0.7, updated=True, parts=PARTS):
    return StepDone(number, 0.5, loss, 100, 1e-3, norm, updated, 0.5, dict(parts))


def write(run, attempt, rank, events, begin=0.0, wall_ahead=1e9):
    path = run.events_of(attempt, rank)
    path.parent.mkdir(parents=True, exist_ok=True)
    stamps = (Stamped(wall_ahead + begin + n, begin + n, event) for n, event in enumerate(events))
    path.write_text("".join(map(to_line, stamps)), encoding="utf-8")
    return path


def started(attempt, rank):
    return AttemptStarted(attempt, rank, 2, f"host-{rank}", "cpu", 1)


@pytest.fixture
def run(tmp_path):
    return RunDir(tmp_path)


@pytest.fixture
def read_alone(monkeypatch):
    """Lines that were read one by one."""
    lines = []

    def watched(kind, own):
        lines.extend(own)
        return one_by_one(kind, own)

    monkeypatch.setattr(parsing, "one_by_one", watched)
    return lines


def same_columns(left, right):
    assert left.line.tolist() == right.line.tolist()
    assert left.plain.keys() == right.plain.keys()
    for name, values in left.plain.items():
        assert values.dtype == right.plain[name].dtype
        np.testing.assert_array_equal(values, right.plain[name])
    assert left.groups.keys() == right.groups.keys()
    for group, numbers in left.groups.items():
        assert numbers.keys() == right.groups[group].keys()
        for name, values in numbers.items():
            np.testing.assert_array_equal(values, right.groups[group][name])


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
        monkeypatch.setattr(tables, "CHUNK_BYTES", size)
        found = read_tables(run)
        for kind in (StepDone, Incident):
            for name, values in whole[kind].columns.items():
                np.testing.assert_array_equal(values, found[kind][name])


def test_older_runs_with_spaces_and_without_later_fields_are_read(run, read_alone):
    path = write(run, 1, 0, [step(n) for n in range(300)])
    older = [json.loads(line) for line in path.read_text().splitlines()]
    for content in older:
        del content["parts_s"]
    path.write_text("".join(json.dumps(content) + "\n" for content in older))
    found = read_tables(run)
    assert found[StepDone]["step"].tolist() == list(range(300))
    assert found[StepDone].groups["parts_s"] == {}
    assert read_alone == []


def test_parts_that_only_some_steps_have_stand_where_they_happened(run):
    rare = {"data": 0.001, "exposed communication": 0.25, "evaluation": 2.0, "rest": 0.01}
    events = [step(n, parts=rare if n % 100 == 99 else PARTS) for n in range(1000)]
    write(run, 1, 0, events)
    parts = read_tables(run)[StepDone].groups["parts_s"]
    assert list(parts) == ["data", "exposed communication", "evaluation", "rest"]
    assert np.flatnonzero(~np.isnan(parts["evaluation"])).tolist() == list(range(99, 1000, 100))
    assert not np.isnan(parts["rest"]).any()


def test_names_are_merged_in_the_order_in_which_they_were_seen():
    known = ["a", "c"]
    merge_order(known, ["a", "b", "c", "d"])
    merge_order(known, ["z", "a"])
    assert known == ["z", "a", "b", "c", "d"]


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


def changes_of(numbers, names, torn_at):
    contents = st.fixed_dictionaries(
        {},
        optional={
            "wall_at": numbers,
            "step": numbers,
            "loss": numbers,
            "updated": numbers,
            "later": numbers | st.just({"a": 1, "b": [1, 2]}),
            "parts_s": st.dictionaries(names, numbers, max_size=3),
        },
    )
    return st.lists(st.tuples(contents, st.integers(1, 3), torn_at), max_size=6)


NEVER = st.just(1000)
odd_numbers = st.sampled_from([None, True, "x", [], {}, 10**30, -(10**400)]) | st.integers(
    -5, 10**17
)
odd_names = ["data", "cache-miss", "data2", "eth0", "aE", "1e-5", "a,b", 'q"uote', "e:"]


@given(
    changes_of(st.floats() | odd_numbers, st.sampled_from(odd_names), NEVER | st.integers(0, 400))
    | changes_of(st.floats() | st.none(), st.sampled_from(["data", "eth0"]), NEVER)
)
@settings(deadline=None, max_examples=300, derandomize=True)
def test_every_way_of_reading_gives_what_reading_one_by_one_gives(changes):
    """Lines that are wrong in all kinds of ways, each several times, some of them torn."""
    regular = json.loads(to_line(Stamped(1.0, 2.0, step(1))))
    lines = [json.dumps(regular | {"step": n}).encode() for n in range(3)]
    for change, times, torn_at in changes:
        line = json.dumps(regular | change, separators=(",", ":")).encode()
        lines += [line if torn_at > len(line) else line[:torn_at]] * times
    lines = [line for line in lines if b"\n" not in line and line]
    parsed = parse(b"".join(line + b"\n" for line in lines))
    found = parsed.found[StepDone]
    expected = one_by_one(StepDone, lines)
    assert parsed.unread_lines == len(lines) - expected.rows
    for group in (found.groups, expected.groups):  # the order of names has its own test
        group["parts_s"] = dict(sorted(group["parts_s"].items()))
    same_columns(found, expected)


def test_no_step_or_reading_of_a_usual_run_is_read_by_itself(run, read_alone):
    """Also where norms are not finite, steps are skipped, parts come and go, values are null."""
    rare = {"data": 0.001, "evaluation": 2.0, "rest": 0.01}
    events = []
    for n in range(1, 400):
        parts = rare if n % 50 == 0 else PARTS
        done = step(n, loss=n / 7, norm=[0.7, math.nan, math.inf][n % 3], parts=parts)
        peak = 1e9 + n if n % 2 else None
        events.append(replace(done, updated=n % 3 == 0, memory_peak_bytes=peak, step_s=10**-n))
        if n % 5 == 0:
            values = {"network/eth0:1/sent_bytes_total": n, "gpu/1/power_w": n / 3}
            events.append(SensorReading(values))
    write(run, 1, 0, events)
    found = read_tables(run)
    assert read_alone == []
    steps, readings = found[StepDone], found[SensorReading]
    assert steps["step"].tolist() == list(range(1, 400))
    assert steps["loss"].tolist() == [n / 7 for n in range(1, 400)]
    assert np.isnan(steps["gradient_norm"]).sum() == 133
    assert np.isinf(steps["gradient_norm"]).sum() == 133
    assert steps["updated"].tolist() == [n % 3 == 0 for n in range(1, 400)]
    assert np.isnan(steps["memory_peak_bytes"]).tolist() == [n % 2 == 0 for n in range(1, 400)]
    assert np.flatnonzero(~np.isnan(steps.groups["parts_s"]["evaluation"])).tolist() == [
        n - 1 for n in range(50, 400, 50)
    ]
    power = readings.groups["values"]["gpu/1/power_w"]
    assert power.tolist() == [n / 3 for n in range(5, 400, 5)]
    assert readings.groups["values"]["network/eth0:1/sent_bytes_total"][0] == 5


def test_a_run_in_which_no_two_lines_are_alike_is_read_all_the_same(run, read_alone):
    write(run, 1, 0, [step(n, parts={f"part {n}": n / 8}) for n in range(100)])
    found = read_tables(run)
    assert len(read_alone) == 100 - parsing.MOST_PATTERNS
    assert found[StepDone]["step"].tolist() == list(range(100))
    assert found[StepDone].groups["parts_s"]["part 99"][99] == 99 / 8


def test_the_same_names_in_another_order_keep_their_numbers(run):
    turned = dict(reversed(PARTS.items()))
    write(run, 1, 0, [step(n, parts=turned if n % 2 else PARTS) for n in range(50)])
    parts = read_tables(run)[StepDone].groups["parts_s"]
    for name, seconds in PARTS.items():
        assert parts[name].tolist() == [seconds] * 50


def test_lines_that_overburden_a_reader_of_json_are_left_out(run):
    path = write(run, 1, 0, [step(n) for n in range(3)])
    lines = path.read_bytes().splitlines()
    lines[1] = lines[1].replace(b'"loss":3.25', b'"loss":' + b"[" * 200_000)
    path.write_bytes(b"\n".join(lines))
    found = read_tables(run)
    assert found[StepDone]["step"].tolist() == [0, 2]
    assert found.unread_lines == 1


def test_whoever_waits_is_told_of_every_byte(run, monkeypatch):
    paths = [write(run, 1, rank, [step(n) for n in range(100)]) for rank in range(2)]
    monkeypatch.setattr(tables, "CHUNK_BYTES", 1000)
    told = []
    read_tables(run, told.append)
    assert len(told) > 10
    assert sum(told) == sum(path.stat().st_size for path in paths)


@pytest.mark.parametrize("number", ["1e999", "-1e999", f"1{'0' * 400}", f"-1{'0' * 400}"])
def test_numbers_that_no_double_can_hold_are_infinite_either_way(number):
    line = to_line(Stamped(1.0, 2.0, step(1))).replace("3.25", number).encode()
    for found in (one_by_one(StepDone, [line]), parse(line).found[StepDone]):
        assert found.plain["loss"].tolist() == [math.copysign(math.inf, float(number))]
