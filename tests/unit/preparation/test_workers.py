import logging
import os

import pytest
from unit.preparation.prepared import content

from dragoman.errors import RunError, StorageError, UserError
from dragoman.preparation import pipeline, prepare
from dragoman.preparation.plan import make_plan
from dragoman.preparation.stage import Stage
from dragoman.preparation.task import Result, Task
from dragoman.preparation.workers import LocalWorkers, run_tasks


@pytest.mark.usefixtures("small_slices")
def test_more_cores_give_the_same_bytes(recipe, monkeypatch):
    alone = prepare(recipe())
    monkeypatch.setattr(pipeline, "_cores", lambda plan: 3)
    assert content(prepare(recipe(name="by-three"))) == content(alone)


def test_an_error_in_a_process_is_the_same_sentence(recipe, digits, monkeypatch):
    (digits.parent / "train.de").write_bytes(b"\xff\n" * 800)
    monkeypatch.setattr(pipeline, "_cores", lambda plan: 2)
    with pytest.raises(UserError, match=r"train\.de, line 1: not UTF-8"):
        prepare(recipe())


def test_a_full_disk_in_a_process_is_the_same_sentence(recipe, digits, monkeypatch):
    (digits.parent / "prepared").mkdir()
    config = recipe()
    make_plan(config).clean.folder.write_text("a file where the folder should be")
    monkeypatch.setattr(pipeline, "_cores", lambda plan: 2)
    with pytest.raises(StorageError, match=r"prepared: .* while preparing data"):
        prepare(config)


def log_number(number, inputs):
    logging.getLogger("dragoman.corpus").warning(f"task {number}")
    return Result({}, pairs=number)


def end_process(number, inputs):
    os._exit(1)


def tasks(function, folder, count):
    return [Task(function, number, {}, Stage(folder), number) for number in range(count)]


@pytest.mark.parametrize("cores", [1, 2])
def test_what_processes_log_is_logged_by_the_caller(tmp_path, caplog, cores):
    with LocalWorkers(cores) as workers:
        run_tasks(workers, tasks(log_number, tmp_path, 3), "working", total=3)
    assert sorted(caplog.messages) == ["task 0", "task 1", "task 2"]
    assert {record.name for record in caplog.records} == {"dragoman.corpus"}
    assert Stage(tmp_path).numbers() == [0, 1, 2]


def test_tasks_are_made_as_they_are_needed(tmp_path):
    made = []
    made_and_noted = (made.append(task) or task for task in tasks(log_number, tmp_path, 20))
    with LocalWorkers(2) as workers:
        done = workers.do(made_and_noted)
        next(done)
        assert len(made) <= 6
        assert sum(1 for _ in done) == 19


def test_a_process_that_is_killed_is_one_sentence(tmp_path):
    with LocalWorkers(2) as workers, pytest.raises(RunError, match="was killed, perhaps since"):
        list(workers.do(tasks(end_process, tmp_path, 2)))
