import logging
import os
import sys

import psutil
import pytest
from processes import wait_until

from dragoman.config import NotifySettings
from dragoman.errors import ConfigError, RunError
from dragoman.rundir import RunDir
from dragoman.watch import notifier
from dragoman.watch.messages import Ending
from dragoman.watch.notifier import Order, check_notify, notifications

COMMAND = NotifySettings(command=("true",))


@pytest.fixture
def played(tmp_path, monkeypatch):
    """Another program in the place of the process, which writes down all that it is told."""
    folder = tmp_path / "played"
    folder.mkdir()
    (folder / "played.py").write_text(
        "import os, pathlib, sys\n"
        "print('a complaint', flush=True)\n"
        f"pathlib.Path({str(folder / 'half')!r}).write_text(sys.stdin.read())\n"
        f"pathlib.Path({str(folder / 'half')!r}).rename({str(folder / 'told')!r})\n"
    )
    monkeypatch.setattr(notifier, "PROGRAM", "played")
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    monkeypatch.setenv("PYTHONPATH", path)

    before = children()

    def told():
        wait_until((folder / "told").exists)
        wait_until(lambda: children() <= before)
        order, ending = (folder / "told").read_text().splitlines()
        return Order.model_validate_json(order), Ending.model_validate_json(ending)

    return told


def children():
    """Those of other tests in this process, too."""
    return {*psutil.Process().children()}


def test_without_settings_nothing_is_started(tmp_path):
    before = children()
    with notifications(NotifySettings(), RunDir(tmp_path)) as ended:
        assert children() <= before
        ended(0)


def test_an_order_goes_first_and_the_exit_code_last(played, tmp_path, caplog):
    run = RunDir(tmp_path / "run")
    with notifications(COMMAND, run) as ended:
        ended(75)
    order, ending = played()
    assert (order.run, order.settings, order.had_begun) == (str(run.root), COMMAND, False)
    assert order.launcher == os.getpid()
    assert ending == Ending(code=75)
    assert [r.message for r in caplog.records if r.levelno == logging.WARNING] == ["a complaint"]


def test_an_error_is_an_end_with_its_first_line(played, tmp_path):
    with pytest.raises(RunError), notifications(COMMAND, RunDir(tmp_path)):
        raise RunError("rank 1 is gone\n  at this place")
    assert played()[1] == Ending(code=1, error="rank 1 is gone")


def test_ctrl_c_is_an_end(played, tmp_path):
    with pytest.raises(KeyboardInterrupt), notifications(COMMAND, RunDir(tmp_path)):
        raise KeyboardInterrupt
    assert played()[1] == Ending(code=130)


def test_a_run_with_records_has_begun(played, tmp_path):
    run = RunDir(tmp_path / "run")
    run.events.mkdir(parents=True)
    with notifications(COMMAND, run):
        pass
    assert played()[0].had_begun


def test_a_process_that_dies_at_once_costs_nothing(tmp_path, monkeypatch):
    before = children()
    monkeypatch.setattr(notifier, "PROGRAM", "no.such.module")
    with notifications(COMMAND, RunDir(tmp_path)) as ended:
        wait_until(lambda: children() <= before)
        ended(0)


def test_a_process_that_cannot_be_started_costs_nothing(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with notifications(COMMAND, RunDir(tmp_path)) as ended:
        ended(0)
    assert "no notifications will be sent" in caplog.text


def test_a_variable_that_is_not_set_is_refused(monkeypatch, tmp_path):
    monkeypatch.delenv("HOOK", raising=False)
    with (
        pytest.raises(ConfigError, match=r"notify\.webhook_variable: .* HOOK is not set"),
        notifications(NotifySettings(webhook_variable="HOOK"), RunDir(tmp_path)),
    ):
        raise AssertionError("nothing may start")


def test_a_command_that_does_not_exist_is_refused():
    with pytest.raises(ConfigError, match=r"notify\.command: no program 'no-such-program'"):
        check_notify(NotifySettings(command=("no-such-program", "x")))
