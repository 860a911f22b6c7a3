import re
from pathlib import Path

import pytest
from unit.report.fake_run import WALL_AT, FakeRun

from dragoman.diagnosis.run.record import read_run
from dragoman.errors import ConfigError


@pytest.fixture
def run(tmp_path: Path) -> FakeRun:
    return FakeRun(tmp_path / "run")


def test_settings_from_a_newer_version_are_left_out_and_named(run):
    config = run.directory.config
    config.write_text(
        config.read_text() + 'shiny = 3\nprecision = "fp4"\n\n[teleport]\nenabled = true\n'
    )
    record = read_run(run.directory, read_at=WALL_AT)

    assert record.config.training.steps == 4
    assert record.config.training.precision == "fp32"
    text = "\n".join(record.unreadable)
    assert "unknown key training.shiny" in text
    assert "training.precision = 'fp4'" in text
    assert "unknown key teleport" in text
    assert len(record.unreadable) == 3


def test_a_source_from_a_newer_version_is_left_out_where_others_remain(run):
    config = run.directory.config
    config.write_text(
        config.read_text().replace("train = [", 'train = [{ kind = "telepathy", mind = "open" }, ')
    )
    record = read_run(run.directory, read_at=WALL_AT)

    assert len(record.config.data.train) == 1
    assert len(record.unreadable) == 1


def test_settings_whose_sources_are_all_from_a_newer_version_are_refused(run):
    config = run.directory.config
    config.write_text(
        re.sub("(?m)^train = .*$", 'train = [{ kind = "telepathy" }]', config.read_text())
    )
    with pytest.raises(ConfigError, match="telepathy"):
        read_run(run.directory, read_at=WALL_AT)


@pytest.mark.parametrize("text", ["not toml [", 'name = "x"\n'])
def test_settings_that_cannot_be_understood_at_all_are_refused_in_one_sentence(run, text):
    run.directory.config.write_text(text)

    with pytest.raises(ConfigError) as refusal:
        read_run(run.directory, read_at=WALL_AT)
    assert "\n" not in str(refusal.value)
