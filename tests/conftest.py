"""Fixtures of the digits language, and what holds for all tests."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from digits_language import write_recipe
from hypothesis import settings
from processes import dragoman

from dragoman.config import Config, parse_config

# Some virtual machines announce matrix units (AMX) that kill whoever uses them for half precision.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
# Tiny matrices on two threads mostly wait for each other, the more so on a busy machine.
torch.set_num_threads(1)
# The same examples on every machine and in every run: what fails once fails again.
settings.register_profile("fixed", derandomize=True, database=None, deadline=None)
settings.load_profile("fixed")

HERE = Path(__file__).parent
IN_LABS = (HERE / "hosts", HERE / "lab")
MANY_RANKS = {"three", "four", "three_in_modes"}
PLAYED_RANKS = {"one", "two", "three", "four"}


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What plays on labs, or with more than two ranks, is for `make test-cluster`.

    Tests of a file share a process of xdist, and so do all that look at the same ranks, so that
    these play once.
    """
    for item in items:
        parameters = getattr(item, "callspec", None)
        used = {*getattr(item, "fixturenames", ())}
        used |= {parameters.params.get("ranks")} if parameters else set()
        if any(item.path.is_relative_to(folder) for folder in IN_LABS) or used & MANY_RANKS:
            item.add_marker("cluster")
        file = item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group("ranks" if used & PLAYED_RANKS else file))


@pytest.fixture
def hang_up() -> Iterator[None]:
    """SIGHUP means what it usually does, also where the tests were started by nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    """A recipe of the digits language, its text beside it."""
    return write_recipe(tmp_path)


@pytest.fixture
def digits_config(digits: Path) -> Config:
    return parse_config(digits.read_text(encoding="utf-8"), origin=str(digits))


@pytest.fixture(scope="session")
def trained_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("trained")
    recipe, run = write_recipe(folder), folder / "run"
    done = dragoman("train", recipe, "--run", run, "--set", "training.steps=2")
    assert done.returncode == 0, done.stderr
    return recipe, run


@pytest.fixture
def trained(trained_once: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Path]:
    """A recipe of the digits language, and a copy of a run of two steps, which may be changed."""
    recipe, run = trained_once
    return recipe, shutil.copytree(run, tmp_path / "run", symlinks=True)
