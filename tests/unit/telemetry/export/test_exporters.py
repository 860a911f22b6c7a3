import socket
import sys

import pytest

from dragoman.config import parse_config
from dragoman.installation import install_command
from dragoman.telemetry.export.exporters import open_exporters


def config_of(run, **telemetry):
    text = run.config.read_text(encoding="utf-8")
    return parse_config(
        text, "test", [f"telemetry.{key}={value}" for key, value in telemetry.items()]
    )


@pytest.mark.parametrize(
    ("tool", "package", "setting", "value"),
    [
        ("tensorboard", "tensorboard", "tensorboard", "true"),
        ("prometheus", "prometheus_client", "prometheus_port", "9100"),
        ("mlflow", "mlflow", "mlflow", "file:mlruns"),
        ("wandb", "wandb", "wandb", "offline"),
    ],
)
def test_without_the_package_there_is_one_helpful_sentence(
    run, monkeypatch, caplog, tool, package, setting, value
):
    monkeypatch.setitem(sys.modules, package, None)
    with open_exporters(config_of(run, **{setting: value}), run, "node1", leads=True) as exporters:
        assert exporters == []
    [warning] = caplog.messages
    assert f"telemetry.{setting} is set" in warning
    assert install_command(tool) in warning


def test_a_package_that_cannot_be_imported_is_a_warning(run, monkeypatch, caplog):
    pytest.importorskip("tensorboard")
    monkeypatch.setitem(sys.modules, "tensorboard.compat.proto.event_pb2", None)
    with open_exporters(config_of(run, tensorboard="true"), run, "node1", leads=True) as exporters:
        assert exporters == []
    [warning] = caplog.messages
    assert "telemetry.tensorboard = True cannot be used" in warning


def test_a_port_that_is_taken_is_a_warning(run, caplog):
    pytest.importorskip("prometheus_client")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        config = config_of(run, prometheus_port=port)
        with open_exporters(config, run, "node1", leads=True) as exporters:
            assert exporters == []
    [warning] = caplog.messages
    assert f"telemetry.prometheus_port = {port} cannot be used" in warning


def test_a_folder_that_cannot_be_written_is_a_warning(run, caplog):
    pytest.importorskip("tensorboard")
    run.tensorboard.write_text("not a folder")
    with open_exporters(config_of(run, tensorboard="true"), run, "node2", leads=False) as exporters:
        assert exporters == []
    [warning] = caplog.messages
    assert str(run.tensorboard) in warning


def test_services_are_for_rank_0_and_nothing_is_exported_unless_asked_for(run):
    with open_exporters(config_of(run, wandb="offline"), run, "node2", leads=False) as exporters:
        assert exporters == []
    with open_exporters(config_of(run), run, "node1", leads=True) as exporters:
        assert exporters == []
    with open_exporters(config_of(run, tensorboard="true"), run, "node2", leads=False) as exporters:
        assert len(exporters) == 1
    assert [path.name for path in run.tensorboard.iterdir()] == ["node2"]
