"""`dragoman setup`: this very code in the environment of every host."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from processes import dragoman

from dragoman.cluster.hosts import load_cluster
from dragoman.cluster.setup import NO_PYTHON, environment_script

pytestmark = pytest.mark.timeout(240)


def environment(folder: Path) -> Path:
    """An environment of its own that finds what Dragoman needs, and is spared gigabytes."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    (packages / "shared.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return folder / "bin" / "python"


def test_setup_installs_this_very_version_on_all_hosts(host_list, tmp_path):
    pythons = {
        f"node{n}": {"python": str(environment(tmp_path / f"environment {n}"))} for n in (1, 2)
    }
    done = dragoman("setup", "--hosts", host_list(2, **pythons))
    assert done.returncode == 0, done.stderr
    for number in (1, 2):
        assert f"node{number} | ready after" in done.stdout
        installed = next((tmp_path / f"environment {number}").glob("lib/*/site-packages/dragoman"))
        assert (installed / "shipped_recipes" / "demo.toml").exists()


def test_setup_names_the_host_that_has_no_python(host_list):
    done = dragoman("setup", "--hosts", host_list(1, node1={"python": "/nowhere/python"}))
    assert done.returncode == 2
    assert "node1: has no Python 3.11 or newer at /nowhere/python" in done.stderr


def run_script(host, **environment_variables: str) -> int:
    script = environment_script(host)
    return subprocess.run(["sh", "-c", script], env=environment_variables, check=False).returncode


def test_setup_makes_an_environment_where_none_is_named(tmp_path):
    folder = tmp_path / "wo rk"
    host = load_cluster("a").hosts[0].model_copy(update={"folder": str(folder)})
    tools = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    assert run_script(host, PATH=tools, HOME=str(tmp_path)) == 0
    assert (folder / ".venv" / "bin" / "python").exists()
    assert run_script(host, PATH=tools, HOME=str(tmp_path)) == 0


def test_an_old_python_is_refused(tmp_path):
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    host = load_cluster("a").hosts[0].model_copy(update={"folder": "~/x", "python": str(old)})
    assert run_script(host, PATH="/usr/bin:/bin", HOME=str(tmp_path)) == NO_PYTHON
