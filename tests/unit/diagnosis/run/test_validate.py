import numpy as np
import pytest
from unit.diagnosis.speed_run import new_run
from unit.report.fake_run import started, step

from dragoman.diagnosis.run.validate import validated
from dragoman.telemetry.events import DeviceFound, StepDone
from dragoman.telemetry.read.reader import read_tables


@pytest.mark.parametrize(
    ("before", "after", "left"),
    [
        ('"step_s":1.0', '"step_s":-1.0', 2),
        ('"step_s":1.0', '"step_s":NaN', 2),
        ('"step_s":1.0', '"step_s":1e300', 2),
        ('"data":0.25', '"data":Infinity', 3),
        ('"learning_rate":0.0002', '"learning_rate":Infinity', 2),
    ],
)
def test_what_cannot_be_is_left_out(tmp_path, before, after, left):
    run = new_run(tmp_path)
    run.with_events([(0.0, started()), *((float(n), step(n)) for n in (1, 2, 3))])
    path = run.directory.events_of(1, 0)
    lines = path.read_text().splitlines()
    assert before in lines[2]
    path.write_text("\n".join([*lines[:2], lines[2].replace(before, after), lines[3]]) + "\n")
    tables, left_out = validated(read_tables(run.directory))

    assert len(tables[StepDone]) == left
    assert left_out == 3 - left
    if left == 3:
        assert np.isnan(tables[StepDone].groups["parts_s"]["data"]).tolist() == [False, True, False]


def test_a_figure_that_may_be_missing_is_taken_as_missing(tmp_path):
    run = new_run(tmp_path)
    device = DeviceFound("cuda:0", "A100", "bf16", 3e14, -1.0)
    run.with_events([(0.0, started()), (0.1, device), (1.0, step(1))])
    tables, left_out = validated(read_tables(run.directory))

    assert left_out == 0
    assert tables[DeviceFound]["peak_flops"].tolist() == [3e14]
    assert np.isnan(tables[DeviceFound]["memory_bytes"]).all()
