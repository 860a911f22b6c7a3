from pathlib import Path

import pytest
from unit.report.fake_run import FakeRun
from unit.report.rendered import finish, report

from dragoman.report.content import Report


@pytest.fixture
def empty_run(tmp_path: Path) -> FakeRun:
    """As it is before the first worker has reported."""
    return FakeRun(tmp_path / "run")


@pytest.fixture
def finished_run(empty_run: FakeRun) -> FakeRun:
    return finish(empty_run)


@pytest.fixture
def empty_report(empty_run: FakeRun) -> Report:
    return report(empty_run)


@pytest.fixture
def finished_report(finished_run: FakeRun) -> Report:
    return report(finished_run)
