import importlib.util
import json
import subprocess
import sys

import pytest
from unit.telemetry.export.exporting import export

from dragoman.rundir import read_json


@pytest.mark.skipif(not importlib.util.find_spec("mlflow"), reason="needs dragoman[mlflow]")
def test_mlflow_holds_the_figures_of_all_attempts_in_one_run(run, tmp_path):
    address = f"file:{tmp_path}/mlruns"
    for _ in range(2):
        export(run, f"telemetry.mlflow={address}", home=tmp_path)
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
