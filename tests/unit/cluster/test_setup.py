"""The shell lines that setup sends to a host, run by a shell here."""

import subprocess
import sys

import pytest

from dragoman.cluster.hosts import Host
from dragoman.cluster.setup import NO_PYTHON, PipSteps, environment_script


def run(host, **more):
    done = subprocess.run(["sh", "-c", environment_script(host)], check=False, **more)
    return done.returncode


def test_the_folder_is_made_and_the_user_s_own_python_taken(tmp_path):
    host = Host(name="a", folder=str(tmp_path / "my work"), python=sys.executable)
    assert run(host) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["my work"]
    assert list((tmp_path / "my work").iterdir()) == [], "no environment was made"


def test_an_environment_is_made_once_where_none_is_named(tmp_path):
    """With a python3 that makes one at once."""
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python3"
    python.write_text(f'#!/bin/sh\nmkdir -p "$3/bin"; ln -s {sys.executable} "$3/bin/python"\n')
    python.chmod(0o755)
    host = Host(name="a", folder=str(tmp_path / "work"))
    for _ in range(2):  # a second link would fail
        assert run(host, env={"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}) == 0
    assert (tmp_path / "work" / ".venv" / "bin" / "python").exists()


@pytest.mark.parametrize("program", [None, "#!/bin/sh\nexit 1\n"], ids=["missing", "too old"])
def test_a_python_that_will_not_do_has_an_exit_code_of_its_own(tmp_path, program):
    python = tmp_path / "python"
    if program:
        python.write_text(program)
        python.chmod(0o755)
    assert run(Host(name="a", folder=str(tmp_path / "work"), python=str(python))) == NO_PYTHON
    assert list((tmp_path / "work").iterdir()) == [], "nothing is made in its place"


def test_a_folder_that_cannot_be_made_fails_otherwise(tmp_path):
    (tmp_path / "file").touch()
    host = Host(name="a", folder=str(tmp_path / "file" / "work"), python=sys.executable)
    assert run(host, stderr=subprocess.DEVNULL) not in (0, NO_PYTHON)


def test_pip_s_lines_are_counted_once_a_package_and_the_rest_at_the_end():
    done = []
    steps = PipSteps(3, done.append)
    for line in (
        "Collecting torch==2.13.0",
        "  Downloading torch-2.13.0.whl (800 MB)",
        "Requirement already satisfied: numpy==2.1 in ./lib (2.1)",
        "Collecting torch==2.13.0 (from x)",
        "Collecting a",
        "Collecting one-more-than-expected",
        "Installing collected packages: torch, a",
    ):
        steps.read(line)
    assert done == [1, 1, 1]
    steps.end()
    assert sum(done) == 6
    assert steps.left == 0
