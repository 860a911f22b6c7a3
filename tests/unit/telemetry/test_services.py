"""MLflow and Weights & Biases, the real packages, offline, each in a process of its own."""

import importlib.util
import json
import struct
import subprocess
import sys
import threading

import pytest
from digits_language import RECIPE

from dragoman.config import parse_config
from dragoman.rundir import RunDir, read_json
from dragoman.telemetry.events import AttemptEnded, Stamped, StepDone
from dragoman.telemetry.export import background
from dragoman.telemetry.export.background import BackgroundExporter
from dragoman.telemetry.export.exporters import open_exporters

# Trains nothing: two steps, an evaluation, a reading and the end, given to the exporters as the
# writer gives them.
PROGRAM = """
import math, sys
from pathlib import Path
from dragoman.config import load_config
from dragoman.rundir import RunDir
from dragoman.telemetry.events import *
from dragoman.telemetry.export.exporters import open_exporters
from dragoman.telemetry.record.writer import EventWriter

root, *overrides = sys.argv[1:]
config = load_config(Path(root) / "config.toml", overrides)
run = RunDir(Path(root))
with open_exporters(config, run, "node1", leads=True) as exporters:
    events = EventWriter(run.events_of(1, 0), exporters)
    parts = {"data": 0.25}
    events.emit(StepDone(1, 0.5, 3.5, 100, 1e-3, math.inf, True, 0.5, parts))
    events.emit(Evaluated(1, 2.5, None, 31.5, None, "", "", True, 1.0))
    events.emit(SensorReading({"gpu/0/power_w": 251.5}))
    events.emit(AttemptEnded(1, "finished", "steps are done"))
    events.close()
"""


@pytest.fixture
def run(tmp_path):
    root = tmp_path / "run"
    root.mkdir()
    text = RECIPE.format(folder=tmp_path)
    (root / "config.toml").write_text(text, encoding="utf-8")
    return RunDir(root)


def config_of(run, **telemetry):
    text = run.config.read_text(encoding="utf-8")
    return parse_config(
        text, "test", [f"telemetry.{key}={value}" for key, value in telemetry.items()]
    )


def mirrored(run, *overrides, home):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(run.root), *overrides],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin", "HOME": str(home)},
    )
    assert "warning" not in done.stderr, done.stderr


@pytest.mark.skipif(not importlib.util.find_spec("mlflow"), reason="needs dragoman[mlflow]")
def test_mlflow_holds_the_figures_of_all_attempts_in_one_run(run, tmp_path):
    address = f"file:{tmp_path}/mlruns"
    for _ in range(2):
        mirrored(run, f"telemetry.mlflow={address}", home=tmp_path)
    known = read_json(run.root / "mlflow.json")
    assert known["uri"] == address
    look = (
        "import json, sys; from mlflow import MlflowClient\n"
        "client = MlflowClient(tracking_uri=sys.argv[1]); run = client.get_run(sys.argv[2])\n"
        "steps = [m.step for m in client.get_metric_history(run.info.run_id, 'loss/validation')]\n"
        "runs = client.search_runs([run.info.experiment_id])\n"
        "print(json.dumps([run.data.metrics, run.data.params, run.info.status, steps, len(runs)]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", look, address, known["run_id"]],
        capture_output=True,
        text=True,
        check=True,
        env={"MLFLOW_ALLOW_FILE_STORE": "true", "MLFLOW_DISABLE_TELEMETRY": "true"},
    )
    metrics, parameters, status, steps, runs = json.loads(done.stdout)
    assert metrics["loss/train smoothed with dropout"] == 3.5
    assert metrics["quality/BLEU"] == 31.5
    assert metrics["step parts/data seconds"] == 0.25
    assert metrics["node1 gpu/0 power w"] == 251.5
    assert "optimizer/gradient norm" not in metrics  # it was infinite
    assert parameters["model.preset"] == "transformer-tiny"
    assert (status, steps, runs) == ("FINISHED", [1, 1], 1)


@pytest.mark.skipif(not importlib.util.find_spec("wandb"), reason="needs dragoman[wandb]")
def test_wandb_writes_files_that_hold_the_figures(run, tmp_path):
    mirrored(run, "telemetry.wandb=offline", home=tmp_path)
    identity = read_json(run.root / "wandb.json")["id"]
    (path,) = run.root.glob(f"wandb/offline-run-*/run-{identity}.wandb")
    history = {}
    config_keys = set()
    for record in wandb_records(path.read_bytes()):
        config_keys |= {item.key for item in record.run.config.update}
        for item in record.history.item:
            key = item.key or "/".join(item.nested_key)
            history[key] = json.loads(item.value_json)
    assert history["loss/train (smoothed, with dropout)"] == 3.5
    assert history["quality/BLEU"] == 31.5
    assert history["node1 gpu/0 power w"] == 251.5
    assert history["step"] == 1
    assert {"model", "training", "telemetry"} <= config_keys


def wandb_records(data):
    """The file is LevelDB's log: blocks of 32 KB, records with checksum, length and place."""
    from wandb.proto import wandb_internal_pb2

    whole, at = b"", 7
    while at + 7 <= len(data):
        if (left := 32768 - at % 32768) < 7:
            at += left
            continue
        length, place = struct.unpack("<HB", data[at + 4 : at + 7])
        whole += data[at + 7 : at + 7 + length]
        at += 7 + length
        if place in (1, 4):  # whole, or the last piece
            record = wandb_internal_pb2.Record()
            record.ParseFromString(whole)
            yield record
            whole = b""


@pytest.mark.parametrize(("package", "value"), [("mlflow", "file:mlruns"), ("wandb", "offline")])
def test_without_the_package_there_is_one_helpful_sentence(
    run, monkeypatch, capsys, package, value
):
    monkeypatch.setitem(sys.modules, package, None)
    with open_exporters(config_of(run, **{package: value}), run, "node1", leads=True) as exporters:
        assert exporters == []
    warnings = capsys.readouterr().err.splitlines()
    assert len(warnings) == 1
    assert f"pip install dragoman[{package}]" in warnings[0]


def test_services_are_for_rank_0_and_nothing_is_mirrored_unless_asked_for(run):
    with open_exporters(config_of(run, wandb="offline"), run, "node2", leads=False) as exporters:
        assert exporters == []
    with open_exporters(config_of(run), run, "node1", leads=True) as exporters:
        assert exporters == []
    with open_exporters(config_of(run, tensorboard="true"), run, "node2", leads=False) as exporters:
        assert len(exporters) == 1
    assert [path.name for path in run.tensorboard.iterdir()] == ["node2"]


class Recording:
    def __init__(self):
        self.sent, self.closed = [], False

    def send(self, events):
        self.sent += [stamped.event for stamped in events]

    def close(self):
        self.closed = True


def done(number):
    return StepDone(number, 0.5, 3.0, 100, 1e-3, 0.7, True, 0.5)


def test_a_service_gets_a_step_a_second_and_everything_else():
    service = Recording()
    exporter = BackgroundExporter("test", lambda: service)
    ended = AttemptEnded(40, "finished", "")
    for tenth in range(40):
        exporter(Stamped(0.0, 100 + tenth / 10, done(tenth)))
    exporter(Stamped(0.0, 104.0, ended))
    exporter.close()
    assert service.sent == [done(0), done(10), done(20), done(30), ended]
    assert service.closed


def test_a_service_that_hangs_holds_up_nobody(monkeypatch):
    monkeypatch.setattr(background, "CLOSE_TIMEOUT_S", 0.05)
    gate = threading.Event()
    opened = threading.Event()

    def hang():
        opened.set()
        gate.wait()
        return Recording()

    exporter = BackgroundExporter("test", hang)
    assert opened.wait(30)
    for number in range(3 * background.CAPACITY):
        exporter(Stamped(0.0, float(2 * number), done(number)))
    exporter.close()
    gate.set()


def test_a_service_that_cannot_be_opened_or_fails_is_one_warning(capsys):
    def refuse():
        raise RuntimeError("no such server\nand a long story")

    exporter = BackgroundExporter("mlflow", refuse)
    for number in range(5):
        exporter(Stamped(0.0, float(2 * number), done(number)))
    exporter.close()
    assert capsys.readouterr().err.splitlines() == [
        "warning: mlflow does not get this run's figures: no such server"
    ]

    class Failing(Recording):
        def send(self, events):
            raise ConnectionError

    failing = Failing()
    exporter = BackgroundExporter("wandb", lambda: failing)
    exporter(Stamped(0.0, 0.0, done(1)))
    exporter.close()
    assert capsys.readouterr().err.splitlines() == [
        "warning: wandb misses some of this run's figures: ConnectionError"
    ]
    assert failing.closed
