"""The schema of a check's file."""

import json

import pytest
from check_worlds import host
from pydantic import ValidationError

from dragoman.check.result import CheckResult, Finding, read_check, write_check
from dragoman.errors import UserError


def result(**changes: object) -> CheckResult:
    keys = {"dragoman": "1", "checked_at": "2026-01-01T00:00:00Z", "seconds": 1.0, "recipe": None}
    keys |= {"workload_hash": None, "parameters": None, "hosts": (host("node1"),)}
    return CheckResult(**{**keys, **changes})


def test_a_result_survives_its_file():
    finding = Finding(subject="port", verdict="unfit", sentence="node3 is slow", hosts=("node3",))
    before = result(findings=(finding,))
    assert CheckResult.model_validate_json(before.model_dump_json()) == before


def test_one_unfit_finding_makes_the_cluster_unfit():
    good = Finding(subject="disk", verdict="good", sentence="enough")
    warning = Finding(subject="clock", verdict="warning", sentence="2 s ahead")
    unfit = Finding(subject="port", verdict="unfit", sentence="94 Mbit/s")
    assert result(findings=(good, warning)).is_fit
    assert not result(findings=(good, warning, unfit)).is_fit


def test_figures_that_are_not_numbers_are_refused():
    with pytest.raises(ValidationError, match="seconds"):
        result(seconds=float("nan"))


def test_a_file_is_read_as_it_was_written(tmp_path):
    write_check(tmp_path / "c.json", result())
    assert read_check(tmp_path / "c.json") == result()


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("", "JSON"),
        ('{"format": 1, "find', "JSON"),
        ("[1]", "JSON object"),
        ('{"answers": []}', "not the file of a check"),
        ('{"format": "x", "findings": [], "transfers": []}', "not the file of a check"),
        ('{"format": 99, "findings": [], "transfers": [], "new": 1}', "99"),
        ('{"format": 1, "findings": [], "transfers": []}', "dragoman"),
    ],
)
def test_another_file_is_refused_in_one_sentence(tmp_path, content, names):
    path = tmp_path / "c.json"
    path.write_text(content)
    with pytest.raises(UserError, match=names) as refused:
        read_check(path)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        read_check(tmp_path / "c.json")


def test_absurd_figures_in_a_file_are_refused_by_key(tmp_path):
    path = tmp_path / "c.json"
    content = json.loads(result().model_dump_json()) | {"seconds": -1}
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match="seconds"):
        read_check(path)


def test_a_file_without_hosts_steps_or_workers_is_refused(tmp_path):
    with pytest.raises(ValidationError, match="hosts"):
        result(hosts=())
    with pytest.raises(ValidationError, match="workers"):
        result(hosts=(host("node1").model_dump() | {"workers": 0},))
    timed = {"host": "node1", "rank": 0, "forward_s": 0.0, "backward_s": 0.0, "update_s": 0.0}
    timed |= {"last_backward_s": 0.0, "micro_batches": 1, "peak_memory_bytes": 0}
    for steps in ((), (0.0,)):
        with pytest.raises(ValidationError, match="step_s"):
            result(computing=(timed | {"step_s": steps},))
