import os
import sys
from pathlib import Path

from dragoman.cli.demo import _program


def test_the_command_that_is_suggested_can_be_typed_here(tmp_path, monkeypatch):
    """The demo ends with a line to copy; the environment of this Python may not be active."""
    installed = tmp_path / "env" / "bin" / "dragoman"
    installed.parent.mkdir(parents=True)
    installed.write_text("#!/bin/sh\n")
    installed.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(installed.with_name("python")))
    monkeypatch.setenv("PATH", os.defpath)
    monkeypatch.chdir("/")
    assert Path("/", _program()) == installed
    monkeypatch.chdir(tmp_path)
    assert _program() == "env/bin/dragoman"
    monkeypatch.setenv("PATH", str(installed.parent))
    assert _program() == "dragoman"
