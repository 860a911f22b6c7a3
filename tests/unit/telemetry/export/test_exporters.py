import sys

import pytest

from dragoman.config import parse_config
from dragoman.telemetry.export.exporters import open_exporters


def config_of(run, **telemetry):
    text = run.config.read_text(encoding="utf-8")
    return parse_config(
        text, "test", [f"telemetry.{key}={value}" for key, value in telemetry.items()]
    )


@pytest.mark.parametrize(("package", "value"), [("mlflow", "file:mlruns"), ("wandb", "offline")])
def test_without_the_package_there_is_one_helpful_sentence(
    run, monkeypatch, caplog, package, value
):
    monkeypatch.setitem(sys.modules, package, None)
    with open_exporters(config_of(run, **{package: value}), run, "node1", leads=True) as exporters:
        assert exporters == []
    warnings = caplog.messages
    assert len(warnings) == 1
    assert f"pip install dragoman[{package}]" in warnings[0]


def test_services_are_for_rank_0_and_nothing_is_exported_unless_asked_for(run):
    with open_exporters(config_of(run, wandb="offline"), run, "node2", leads=False) as exporters:
        assert exporters == []
    with open_exporters(config_of(run), run, "node1", leads=True) as exporters:
        assert exporters == []
    with open_exporters(config_of(run, tensorboard="true"), run, "node2", leads=False) as exporters:
        assert len(exporters) == 1
    assert [path.name for path in run.tensorboard.iterdir()] == ["node2"]
