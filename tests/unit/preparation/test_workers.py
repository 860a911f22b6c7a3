import logging
import os
import secrets
import signal
import subprocess
import sys
import time
from contextlib import suppress
from multiprocessing import parent_process
from pathlib import Path

import psutil
import pytest
from processes import wait_until
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
    if parent_process():
        os._exit(1)
    return Result({})


def name_process(folder, inputs):
    """Notes which process does it, once both do."""
    (Path(folder) / f"process-{os.getpid()}").touch()
    while len(list(Path(folder).glob("process-*"))) < 2:
        time.sleep(0.01)
    (Path(folder) / f"done-{secrets.token_hex(8)}").touch()
    return Result({})


def then_none(folder):
    """Yields three tasks, and then lets the other process wait for the next one."""
    for number in range(3):
        yield Task(name_process, folder, {}, Stage(Path(folder) / "x"), number)
    wait_until(lambda: len(list(Path(folder).glob("done-*"))) == 3)
    (Path(folder) / "idle").touch()
    time.sleep(600)


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
        assert len(made) <= 4
        assert sum(1 for _ in done) == 19


def test_a_process_that_is_killed_is_one_sentence(tmp_path):
    with LocalWorkers(2) as workers, pytest.raises(RunError, match="was killed, perhaps since"):
        list(workers.do(tasks(end_process, tmp_path, 2)))


def test_this_process_does_its_share(tmp_path):
    given = [Task(name_process, str(tmp_path), {}, Stage(tmp_path / "x"), n) for n in range(4)]
    with LocalWorkers(2) as workers:
        assert len(list(workers.do(given))) == 4
    assert (tmp_path / f"process-{os.getpid()}").exists()
    assert len(list(tmp_path.glob("process-*"))) == 2


PROGRAM = """
import signal, sys
from dragoman.preparation.workers import LocalWorkers
from unit.preparation.test_workers import then_none
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
with LocalWorkers(2) as workers:
    list(workers.do(then_none(sys.argv[1])))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_process_outlives_its_parent_or_complains_at_its_end(tmp_path, number):
    """A terminal sends Ctrl-C to all of them, others kill the one that they know."""
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, tmp_path],
        env=os.environ | {"PYTHONPATH": path},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as parent:
        try:
            wait_until((tmp_path / "idle").exists)
            pids = {int(path.name.partition("-")[2]) for path in tmp_path.glob("process-*")}
            (child,) = pids - {parent.pid}
            if number == signal.SIGINT:
                os.killpg(parent.pid, number)
            else:
                parent.send_signal(number)
            wait_until(lambda: not psutil.pid_exists(child))
            printed = parent.communicate(timeout=60)[1]
        finally:
            with suppress(ProcessLookupError):
                os.killpg(parent.pid, signal.SIGKILL)
    assert "SpawnProcess" not in printed
