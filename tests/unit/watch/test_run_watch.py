import os
import shutil
import time

import pytest
from browser.invented_run import write_invented_run
from unit.watch.growing_run import NOW, append, new_run, start, training

from dragoman.report.content import Report
from dragoman.report.write import write_report
from dragoman.telemetry.events import AttemptEnded, AttemptStarted
from dragoman.watch import run_watch
from dragoman.watch.analysis import make
from dragoman.watch.run_watch import RunWatch


class AtOnce:
    """Makes reports in this process, whenever something is new."""

    def __init__(self, run):
        self.run, self.has_news, self.urgent = run, True, 0

    def notice(self, is_urgent=False):
        self.has_news = True
        self.urgent += is_urgent

    def poll(self):
        if not self.has_news:
            return None
        self.has_news = False
        return make(self.run)

    def close(self):
        pass


class Never(AtOnce):
    """Makes no report."""

    def poll(self):
        return None


class OneCallLater(AtOnce):
    """Makes reports beside the watch, as it were."""

    made = None

    def poll(self):
        made, self.made = self.made, super().poll()
        return made

    def close(self):
        self.made = None


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(run_watch, "Analysis", AtOnce)
    monkeypatch.setattr(time, "time", lambda: NOW)


@pytest.fixture
def run(tmp_path):
    return new_run(tmp_path / "run")


def listing(folder):
    return {
        path: (path.lstat().st_mtime_ns, path.lstat().st_size, path.lstat().st_ino)
        for path in (folder, *folder.rglob("*"))
    }


def test_a_finished_run_opens_and_nothing_in_it_is_touched(tmp_path):
    run = write_invented_run(tmp_path / "run").directory
    before = listing(run.root)
    watch = RunWatch(run)
    try:
        watched = watch.refresh()
        assert (watched.now.state, watched.now.step, watched.report) == ("finished", 300, None)
        while watched.report is None:
            time.sleep(0.05)
            watched = watch.refresh()
    finally:
        watch.close()
    assert watched.now.trouble == ""
    assert [change.key for change in watched.changes][:11] == [
        a.key for a in watched.report.answers
    ]
    assert {change.before for change in watched.changes} == {""}
    assert listing(run.root) == before


def test_answers_that_the_end_of_a_run_has_written_are_there_at_once(tmp_path, monkeypatch):
    run = write_invented_run(tmp_path / "run").directory
    write_report(run)
    monkeypatch.setattr(run_watch, "Analysis", Never)
    watched = RunWatch(run).refresh()
    assert watched.report == Report.model_validate_json(run.report("json").read_bytes())
    assert [change.key for change in watched.changes[:11]] == [
        answer.key for answer in watched.report.answers
    ]


def test_written_answers_are_not_taken_when_more_was_recorded_or_they_are_torn(
    tmp_path, monkeypatch
):
    run = write_invented_run(tmp_path / "run").directory
    write_report(run)
    monkeypatch.setattr(run_watch, "Analysis", Never)
    [file, *_] = run.events.iterdir()
    written_ns = run.report("json").stat().st_mtime_ns
    os.utime(file, ns=(written_ns + 1, written_ns + 1))
    assert RunWatch(run).refresh().report is None
    os.utime(file, ns=(written_ns, written_ns))
    assert RunWatch(run).refresh().report
    run.report("json").write_text(run.report("json").read_text()[:500])
    assert RunWatch(run).refresh().report is None


@pytest.mark.usefixtures("at_once")
def test_figures_move_as_events_arrive(run):
    watch = RunWatch(run)
    assert watch.refresh().now.state == "preparing"
    append(run, [start(-50), *training(1, 3)])
    assert watch.refresh().now.step == 3
    append(run, training(4, 4))
    watched = watch.refresh()
    assert (watched.now.step, watched.report.state.step) == (4, 4)


@pytest.mark.usefixtures("at_once")
def test_an_answer_that_changes_is_noted_with_what_it_was(run):
    append(run, [start(-500), *training(1, 20)])
    watch = RunWatch(run)
    first = {change.key: change for change in watch.refresh().changes}
    assert (first["step-time"].before, first["step-time"].title) == ("", "Average step")
    append(run, [(1.0, AttemptEnded(20, "failed", "odd", "error"))])
    changes = watch.refresh().changes[len(first) :]
    assert "faults" in [change.key for change in changes]
    assert "duration" not in [change.key for change in changes]


@pytest.mark.usefixtures("at_once")
def test_a_change_of_state_is_urgent(run):
    append(run, [start(-50), *training(1, 3)])
    watch = RunWatch(run)
    watch.refresh()
    calm = watch._analysis.urgent
    append(run, training(4, 4))
    watch.refresh()
    assert watch._analysis.urgent == calm
    append(run, [(1.0, AttemptEnded(4, "failed", "odd", "error"))])
    watch.refresh()
    assert watch._analysis.urgent > calm


@pytest.mark.usefixtures("at_once")
def test_a_run_of_a_newer_version_is_refused_in_words(run):
    append(run, [(0.0, AttemptStarted(1, 0, 1, "h", "cpu", 1, format=99))])
    now = RunWatch(run).refresh().now
    assert "newer version" in now.trouble
    assert "99" in now.trouble


@pytest.mark.usefixtures("at_once")
def test_a_run_that_is_removed_and_comes_back(run, tmp_path):
    append(run, [start(-50), *training(1, 3)])
    watch = RunWatch(run)
    assert watch.refresh().now.trouble == ""
    run.root.rename(tmp_path / "elsewhere")
    gone = watch.refresh()
    assert str(run.root) in gone.now.trouble
    assert gone.now.step == 3
    shutil.copytree(tmp_path / "elsewhere", run.root)
    append(run, training(4, 6))
    back = watch.refresh()
    assert (back.now.trouble, back.now.step) == ("", 6)


@pytest.mark.usefixtures("at_once")
def test_answers_of_a_run_whose_place_another_has_taken_are_forgotten(run, tmp_path):
    other = new_run(tmp_path / "other")
    for number, each in enumerate((run, other)):
        each.id.write_text(str(number))
        os.utime(each.id, (number, number))
    append(run, [start(-50.0), *training(1, 20)])
    watch = RunWatch(run)
    watch.refresh()
    shutil.rmtree(run.root)
    other.root.rename(run.root)
    watched = watch.refresh()
    assert watched.now.step == 0
    assert {change.before for change in watched.changes} == {""}
    assert len({change.key for change in watched.changes}) == len(watched.changes)


@pytest.mark.usefixtures("at_once")
def test_a_report_that_was_begun_of_another_run_is_not_shown(run, tmp_path, monkeypatch):
    monkeypatch.setattr(run_watch, "Analysis", OneCallLater)
    other = new_run(tmp_path / "other")
    append(run, [start(-50.0), *training(1, 20)])
    watch = RunWatch(run)
    assert watch.refresh().report is None
    run.root.rename(tmp_path / "elsewhere")
    other.root.rename(run.root)
    assert watch.refresh().report is None
    assert watch.refresh().report.state.step == 0


@pytest.mark.usefixtures("at_once")
def test_without_an_id_another_run_in_the_same_folder_is_told_by_its_settings(run):
    append(run, [start(-50.0), *training(1, 20)])
    watch = RunWatch(run)
    assert watch.refresh().now.step == 20
    shutil.rmtree(run.events)  # the folder itself stays, as where its inode is used again
    os.utime(run.config, (5, 5))
    assert watch.refresh().now.step == 0


@pytest.mark.usefixtures("at_once")
def test_a_folder_that_is_no_run_yet(tmp_path):
    now = RunWatch(run_watch.RunDir(tmp_path / "runs" / "later")).refresh().now
    assert (now.state, now.name) == ("preparing", "later")
    assert "later" in now.trouble


@pytest.mark.usefixtures("at_once")
def test_torn_files_are_told_of_and_cost_nothing_else(run):
    append(run, [start(-50), *training(1, 3)])
    run.manifest.write_text('{"attempts": [')
    run.status.write_text("{")
    watched = RunWatch(run).refresh()
    assert str(run.manifest) in watched.now.trouble
    assert watched.now.step == 3
    run.config.write_text("name = [")
    now = RunWatch(run).refresh().now
    assert str(run.config) in now.trouble
    assert (now.step, now.name) == (3, "run")


@pytest.mark.usefixtures("at_once")
def test_a_line_that_is_just_being_written_is_no_trouble(run):
    append(run, [start(-50), *training(1, 3)])
    with run.events_of(1, 0).open("a") as file:
        file.write('{"kind":"step","wall_at":17')
    assert RunWatch(run).refresh().now.trouble == ""


@pytest.mark.usefixtures("at_once")
def test_while_nothing_is_added_no_file_is_opened(run, monkeypatch):
    append(run, [start(-50), *training(1, 3)])
    watch = RunWatch(run)
    watch.refresh()
    opened = []
    opens = run_watch.Path.open
    monkeypatch.setattr(
        run_watch.Path, "open", lambda path, *a, **k: opened.append(path) or opens(path, *a, **k)
    )
    watch.refresh()
    assert opened == []
