import sys

import pytest
from browser.invented_run import write_invented_run
from processes import dragoman, sentence

from dragoman.cli.watch import watch
from dragoman.errors import UserError


def test_without_a_terminal_one_screen_is_printed(tmp_path):
    run = write_invented_run(tmp_path / "run").directory
    done = dragoman("watch", run.root)
    assert done.returncode == 0
    assert "finished" in done.stdout
    assert "Fully trained?" in done.stdout


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    assert str(tmp_path / "none") in sentence(dragoman("watch", tmp_path / "none"), 2)


def test_a_page_without_its_packages_names_them(tmp_path, monkeypatch):
    run = write_invented_run(tmp_path / "run").directory
    monkeypatch.setitem(sys.modules, "starlette", None)
    with pytest.raises(UserError, match=r"starlette.*\[serve\]"):
        watch([run.root], web=True)


def test_messages_are_for_one_run_with_notify_in_its_recipe(tmp_path):
    run = write_invented_run(tmp_path / "run").directory
    assert "notify.webhook_variable" in sentence(dragoman("watch", run.root, "--notify"), 2)
    assert "one run" in sentence(dragoman("watch", run.root, run.root, "--notify"), 2)
