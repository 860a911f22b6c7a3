import re
import subprocess
from pathlib import Path

import pytest
import yaml

from dragoman.cluster.hosts import Cluster, Host, load_cluster
from dragoman.config import dump_config, load_config, parse_config
from dragoman.model.size import count_parameters
from dragoman.recipes import shipped_recipe
from dragoman.training.schedule import peak_of

FOLDER = Path(__file__).parents[2] / "recipes"
RECIPES = sorted(FOLDER.glob("*.toml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_shipped_recipe_parses_and_is_commented(path):
    config = load_config(path)
    assert config.name == path.stem
    assert parse_config(dump_config(config), "again") == config
    assert path.read_text(encoding="utf-8").startswith("# ")


def test_the_shipped_host_list_shows_every_key():
    path = FOLDER / "cluster" / "hosts.toml"
    assert [host.name for host in load_cluster(str(path)).hosts] == ["gpu1", "gpu2"]
    text = path.read_text(encoding="utf-8")
    for key in {*Host.model_fields, *Cluster.model_fields}:
        assert re.search(rf"^(# )?(\[\[)?{key}\b", text, re.M), key


def test_the_job_files_start_the_command_that_joins():
    job = FOLDER / "cluster" / "slurm.sbatch"
    subprocess.run(["bash", "-n", job], check=True)
    assert 'srun --kill-on-bad-exit=0 "$python" -m dragoman train' in job.read_text()
    pods = yaml.safe_load((FOLDER / "cluster" / "kubernetes.yaml").read_text())
    assert pods["kind"] == "PyTorchJob"
    for replica in pods["spec"]["pytorchReplicaSpecs"].values():
        container = replica["template"]["spec"]["containers"][0]
        assert container["command"][:4] == ["python", "-m", "dragoman", "train"]


def test_the_recipes_that_are_promised_are_there():
    assert {path.stem for path in RECIPES} >= {"demo", "multi30k", "wmt16-en-de"}
    assert shipped_recipe("demo").exists()


def test_the_wmt16_recipe_is_the_model_of_the_design():
    config = load_config(shipped_recipe("wmt16-en-de"))
    assert count_parameters(config.model, config.tokenizer.vocabulary) == 60_880_896
    peak = peak_of(config.schedule, config.model.width, config.training.steps)
    assert peak.step == 8000
    assert peak.rate == pytest.approx(9.88e-4, rel=1e-3)
    assert (config.optimizer.beta1, config.optimizer.beta2, config.optimizer.epsilon) == (
        0.9,
        0.997,
        1e-9,
    )
    assert (config.training.label_smoothing, config.model.dropout) == (0.1, 0.1)
    assert (config.decoding.beam, config.decoding.length_penalty) == (4, 0.6)
