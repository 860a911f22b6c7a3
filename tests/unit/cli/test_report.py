"""`dragoman report` as it is typed, also at what is no run or hardly one."""

import json

import jsonschema
import pytest
from processes import dragoman
from unit.report.fake_run import WALL_AT, FakeRun, started, step
from unit.report.rendered import finish

from dragoman.report.content import report_schema
from dragoman.rundir import write_json


@pytest.fixture
def finished_run(tmp_path):
    return finish(FakeRun(tmp_path / "run"))


def test_json_goes_to_standard_output_alone_and_no_file_is_written(finished_run):
    done = dragoman("report", finished_run.directory.root, "--json")

    assert done.returncode == 0, done.stderr
    jsonschema.validate(json.loads(done.stdout), report_schema())
    assert not finished_run.directory.report("json").exists()


def test_three_files_are_written_and_named(finished_run):
    done = dragoman("report", finished_run.directory.root)

    assert done.returncode == 0, done.stderr
    paths = [finished_run.directory.report(suffix) for suffix in ("html", "md", "json")]
    assert done.stdout.splitlines()[:3] == [str(path) for path in paths]
    assert all(path.stat().st_size for path in paths)


def test_the_schema_is_printed_without_a_run():
    done = dragoman("report", "--json-schema")

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == report_schema()


def test_a_folder_that_is_no_run_is_refused_in_one_sentence(tmp_path):
    for folder in (tmp_path, tmp_path / "nothing"):
        done = dragoman("report", folder)
        assert done.returncode == 2
        assert done.stdout == ""
        (line,) = done.stderr.splitlines()
        assert line.startswith(f"error: {folder}: is not a run directory")


def test_a_run_that_broke_off_and_was_written_by_a_newer_version_has_a_report(tmp_path):
    fake = FakeRun(tmp_path / "run")
    run = fake.directory
    run.config.write_text(run.config.read_text() + "\n[of_the_future]\nkey = 1\n")
    fake.with_events([(0.0, started(ranks=4)), (1.0, step(1))])
    path = run.events_of(1, 0)
    newer = path.read_text().replace('"kind":"step"', '"kind":"step","of_the_future":[1]')
    path.write_text(newer + '{"kind":"of-the-future","wall_at":1,"monotonic_at":1}\n{"kind":"st')
    write_json(run.status, {"state": "of the future", "heartbeat_at": WALL_AT})
    run.manifest.write_text("{ torn")
    done = dragoman("report", run.root, "--json")

    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    jsonschema.validate(report, report_schema())
    assert report["state"]["name"] == "broken off"
    assert report["state"]["step"] == 1
    left_out = " ".join(report["unreadable"])
    assert "of_the_future" in left_out
    assert "manifest.json" in left_out
    assert "2 lines are torn or of a kind that this version does not know" in left_out
