import importlib.util
import shutil
from pathlib import Path

import pytest

from dragoman import version


@pytest.fixture
def hash_of_copy(tmp_path):
    """A package of two modules, and a function that hashes it."""
    package = tmp_path / "package"
    package.mkdir()
    shutil.copy(Path(version.__file__), package / "version.py")
    (package / "other.py").write_text("x = 1\n")

    def hashed():
        spec = importlib.util.spec_from_file_location("copy_of_version", package / "version.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.code_hash()

    return package, hashed


def test_the_hash_tells_two_states_of_the_code_apart(hash_of_copy):
    package, hashed = hash_of_copy
    before = hashed()
    (package / "__pycache__").mkdir(exist_ok=True)
    (package / "notes.txt").write_text("no code")
    assert hashed() == before
    (package / "other.py").write_text("x = 2\n")
    changed = hashed()
    (package / "other.py").rename(package / "renamed.py")
    assert len({before, changed, hashed()}) == 3


def test_the_hash_does_not_depend_on_where_the_code_is(hash_of_copy, tmp_path):
    package, hashed = hash_of_copy
    before = hashed()
    elsewhere = tmp_path / "elsewhere"
    package.rename(elsewhere)
    shutil.copytree(elsewhere, package)
    assert hashed() == before


def test_this_code_has_one_hash():
    assert version.code_hash() == version.code_hash.__wrapped__()
    assert len(version.code_hash()) == 64
