import importlib.metadata
import json
import shlex
import sys

import pytest

from dragoman import installation
from dragoman.installation import SETUP_COMMAND, install_command


@pytest.fixture
def recorded(monkeypatch):
    """A function that sets what pip has recorded of where the package came from."""

    def record(origin):
        class Distribution:
            def read_text(self, name):
                assert name == "direct_url.json"
                return origin and json.dumps(origin)

        monkeypatch.setattr(importlib.metadata, "distribution", lambda name: Distribution())

    return record


def test_a_package_of_the_index_gets_its_extra_from_there(recorded):
    recorded(None)
    assert install_command("zstd") == f"{sys.executable} -m pip install 'dragoman[zstd]'"


def test_a_clone_is_installed_from_its_folder(recorded):
    recorded({"url": "file:///home/a%20b/dragoman", "dir_info": {"editable": True}})
    words = shlex.split(install_command("serve"))
    assert words[1:] == ["-m", "pip", "install", "--editable", "/home/a b/dragoman[serve]"]


@pytest.mark.parametrize(
    "origin",
    [
        {"url": "file:///home/user/clone", "dir_info": {}},
        {"url": "file:///home/user/dragoman-0.1.0.whl", "archive_info": {}},
    ],
)
def test_a_folder_that_was_copied_from_is_not_relied_on(recorded, origin):
    recorded(origin)
    assert install_command("moses").endswith("install 'dragoman[moses]'")


def test_a_host_of_a_run_gets_it_from_where_the_run_was_started(monkeypatch):
    command = "dragoman setup runs/a/config.toml --hosts 'my hosts.toml'"
    monkeypatch.setenv(SETUP_COMMAND, command)
    assert install_command("tensorboard") == command


def test_code_that_was_never_installed_is_a_clone(monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    folder = shlex.split(install_command("zstd"))[-1].removesuffix("[zstd]")
    assert folder in installation.__file__
