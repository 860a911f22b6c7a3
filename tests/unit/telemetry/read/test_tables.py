import numpy as np
import pytest

from dragoman.telemetry.events import Evaluated, SensorReading, StepDone
from dragoman.telemetry.read.tables import (
    RunTables,
    Table,
    TableBuilder,
    events_at,
    events_of_attempt,
    fields_of,
    group_column,
    known,
    known_mean,
    known_median,
    last_event_by_rank,
    merge_orders,
    rows_of_lowest_rank,
    slices_by_file,
)


def readings(**columns):
    """Rows of SensorReading: name -> values."""
    groups = {name: np.array(values, dtype=float) for name, values in columns.items()}
    rows = len(next(iter(groups.values())))
    times = {name: np.arange(float(rows)) for name in ("wall_at", "monotonic_at")}
    return Table(times, {"values": groups})


@pytest.fixture
def table():
    """Attempt 1 of ranks 0 and 1, attempt 2 of rank 1."""
    places = {"attempt": np.array([1, 1, 1, 2]), "rank": np.array([0, 0, 1, 1])}
    own = readings(load=[1, 2, 3, 4], power=[np.nan, 5, np.nan, 6])
    return Table(places | own.columns, own.groups)


def test_names_are_merged_in_the_order_in_which_they_were_seen():
    orders = [["a", "c"], ["a", "b", "c", "d"], ["z", "a"]]
    assert merge_orders(orders) == ["z", "a", "b", "c", "d"]


def test_rows_are_taken_by_mask_number_or_slice(table):
    for rows in (np.array([False, True, True, False]), np.array([1, 2]), slice(1, 3)):
        assert table.where(rows).groups["values"]["load"].tolist() == [2, 3]
    assert table.where(np.array([3, 0])).groups["values"]["load"].tolist() == [4, 1]
    assert len(table.where(np.array([], dtype=int))) == 0


def test_rows_that_stand_together_are_not_copied(table):
    assert np.shares_memory(table.where(np.array([1, 2]))["wall_at"], table["wall_at"])


def test_every_file_has_its_slice_of_rows(table):
    assert slices_by_file(table) == {(1, 0): slice(0, 2), (1, 1): slice(2, 3), (2, 1): slice(3, 4)}
    assert slices_by_file(table.where(slice(0, 0))) == {}
    assert [(a, r, len(own)) for a, r, own in table.by_rank()] == [(1, 0, 2), (1, 1, 1), (2, 1, 1)]


def test_a_column_that_no_row_has_is_not_a_number(table):
    assert group_column(table, "values", "load").tolist() == [1, 2, 3, 4]
    assert np.isnan(group_column(table, "values", "none")).all()


def test_rows_become_the_events_that_they_were(table):
    tables = RunTables({SensorReading: table}, 0)
    first, second = SensorReading({"load": 1.0}), SensorReading({"load": 2.0, "power": 5.0})
    third = SensorReading({"load": 3.0})
    assert events_at(SensorReading, table, [1, 0]) == [second, first]
    assert events_of_attempt(SensorReading, tables, 1) == [first, second, third]
    assert last_event_by_rank(SensorReading, tables, 1) == {0: second, 1: third}
    assert rows_of_lowest_rank(table, 1).tolist() == [0, 1]
    assert rows_of_lowest_rank(table, 2).tolist() == [3]
    assert rows_of_lowest_rank(table, 3).tolist() == []


def test_tables_are_joined_with_names_that_come_and_go():
    builder = TableBuilder(SensorReading)
    for part in (readings(a=[1, 2]), readings(b=[3], c=[4]), readings(a=[5, 6, 7])):
        builder.add(part)
    joined = builder.table()
    assert list(joined.groups["values"]) == ["b", "c", "a"]
    nan = np.nan
    np.testing.assert_array_equal(joined.groups["values"]["a"], [1, 2, nan, 5, 6, 7])
    np.testing.assert_array_equal(joined.groups["values"]["b"], [nan, nan, 3, nan, nan, nan])
    assert joined["wall_at"].tolist() == [0, 1, 0, 0, 1, 2]


def test_a_field_has_the_type_of_its_column_or_is_a_group_of_columns():
    fields = {field.name: field for field in fields_of(StepDone)}
    assert list(fields)[:3] == ["wall_at", "monotonic_at", "step"]
    assert [name for name, field in fields.items() if field.is_group] == [
        "parts_s",
        "traffic_bytes",
        "counts",
    ]
    assert (fields["wall_at"].type, fields["memory_peak_bytes"].type) == ("f8", "f8")
    assert {f.type for f in fields_of(Evaluated)} == {"f8", "i8", "?", "O"}


def test_what_is_missing_is_no_part_of_a_mean_or_median():
    column = np.array([1.0, np.nan, 2.0, 9.0])

    assert (known_mean(column), known_median(column)) == (4.0, 2.0)
    assert np.isnan([known_mean(column[1:2]), known_median(column[:0])]).all()


def test_values_that_were_not_recorded_are_not_known():
    assert known([1.0, float("nan"), 0.0]) == [1.0, 0.0]
