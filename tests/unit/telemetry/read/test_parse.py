import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.telemetry.event_lines import PARTS, step, write

from dragoman.rundir import RunDir
from dragoman.telemetry.events import (
    SensorReading,
    Stamped,
    StepDone,
    to_line,
)
from dragoman.telemetry.read import parse as parse_module
from dragoman.telemetry.read.parse import LINE, parse, read_one_by_one
from dragoman.telemetry.read.reader import read_tables


@pytest.fixture
def run(tmp_path):
    return RunDir(tmp_path)


@pytest.fixture
def read_alone(monkeypatch):
    """Lines that were read one by one."""
    lines = []

    def watched(numbers, own):
        lines.extend(own)
        return read_one_by_one(numbers, own)

    monkeypatch.setattr(parse_module, "read_one_by_one", watched)
    return lines


def same_columns(left, right):
    assert left.columns.keys() == right.columns.keys()
    for name, values in left.columns.items():
        assert values.dtype == right[name].dtype
        np.testing.assert_array_equal(values, right[name])
    assert left.groups.keys() == right.groups.keys()
    for group, numbers in left.groups.items():
        assert numbers.keys() == right.groups[group].keys()
        for name, values in numbers.items():
            np.testing.assert_array_equal(values, right.groups[group][name])


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
    found = parsed.tables[StepDone]
    expected = read_one_by_one(range(len(lines)), lines)[StepDone]
    del expected.columns[LINE]
    assert parsed.unread_lines == len(lines) - len(expected)
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
    assert np.isnan(steps["gradient_norm"]).sum() == 266
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
    assert len(read_alone) == 100 - parse_module.MOST_PATTERNS
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


@pytest.mark.parametrize("number", ["1e999", "-1e999", f"1{'0' * 400}", f"-1{'0' * 400}"])
def test_numbers_that_no_double_can_hold_are_infinite_either_way(number):
    line = to_line(Stamped(1.0, 2.0, step(1))).replace("3.25", number).encode()
    for tables in (read_one_by_one([0], [line]), parse(line).tables):
        assert tables[StepDone]["loss"].tolist() == [math.copysign(math.inf, float(number))]


@pytest.mark.parametrize("name", ["wall_at", "monotonic_at", "step", "loss", "updated"])
def test_lines_without_what_every_step_has_are_no_steps(name):
    content = json.loads(to_line(Stamped(1.0, 2.0, step(1))))
    del content[name]
    parsed = parse(2 * (json.dumps(content).encode() + b"\n"))
    assert (parsed.tables, parsed.unread_lines) == ({}, 2)
