"""Job files for clouds, Slurm and Kubernetes: what they start is accepted by our command line, and
they have no key and no kind of value that `job_schemas.py` does not know.

Their own programs check them where `make test-jobs` has installed these: JOBS_PYTHON is a Python
with SkyPilot, dstack and Kubeflow's training SDK.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import typer.main
import yaml
from digits_language import write_recipe
from processes import losses
from shipped.job_schemas import SCHEMAS

from dragoman.cli import app
from dragoman.cli.train import PREEMPTED

FOLDER = Path(__file__).parents[2] / "recipes" / "cluster"
SKYPILOT = FOLDER / "skypilot.yaml"
DSTACK = sorted((FOLDER / "dstack").glob("*.dstack.yml"))
SLURM = FOLDER / "slurm.sbatch"
SLURM_DASK = FOLDER / "slurm_dask.py"
KUBERNETES = FOLDER / "kubernetes.yaml"

# Each reads a file by its path, strictly, and prints nothing.
CHECKS = {
    "skypilot": "import sky; sky.Task.from_yaml(path)",
    "dstack": (
        "from dstack._internal.core.models.configurations import parse_apply_configuration\n"
        "import yaml; parse_apply_configuration(yaml.safe_load(open(path)))"
    ),
    # The classes ignore keys that they do not know: what comes out must be what went in.
    "kubeflow": (
        "import json, types, yaml\n"
        "from kubernetes.client import ApiClient\n"
        "from kubeflow.training import models\n"
        "import kubernetes.client.models as pods\n"
        "vars(pods).update(vars(models))\n"
        "job = yaml.safe_load(open(path))\n"
        "client, answer = ApiClient(), types.SimpleNamespace(data=json.dumps(job))\n"
        "made = client.deserialize(answer, models.KubeflowOrgV1PyTorchJob)\n"
        "assert client.sanitize_for_serialization(made) == job, 'unknown keys'"
    ),
}
CHECKED = [("skypilot", SKYPILOT), *(("dstack", path) for path in DSTACK), ("kubeflow", KUBERNETES)]


def commands_of(script: str) -> list[list[str]]:
    """The arguments of every `dragoman` in a shell script, which may be `python -m dragoman`."""
    words = (
        shlex.split(line, comments=True)
        for line in script.replace("\\\n", " ").splitlines()
        if line
    )
    return [
        [word for word in line[line.index("dragoman") + 1 :] if word not in ("||", "exit")]
        for line in words
        if "dragoman" in line
    ]


def scripts() -> dict[str, str]:
    sky, task = yaml.safe_load(SKYPILOT.read_text()), yaml.safe_load(DSTACK[1].read_text())
    pods = yaml.safe_load(KUBERNETES.read_text())["spec"]["pytorchReplicaSpecs"]
    containers = [pod["template"]["spec"]["containers"][0] for pod in pods.values()]
    return {
        "skypilot": sky["run"],
        "dstack": "\n".join(task["commands"]),
        "slurm": re.sub(r"^#.*", "", SLURM.read_text(), flags=re.M),
        "kubernetes": "\n".join(shlex.join(container["command"]) for container in containers),
    }


@pytest.mark.parametrize("name", ["skypilot", "dstack", "slurm", "kubernetes"])
def test_what_a_job_starts_is_accepted_by_the_command_line(name):
    found = commands_of(scripts()[name])
    assert "train" in {command[0] for command in found}
    for command, *arguments in found:
        parser = typer.main.get_command(app).commands[command]
        parser.make_context(command, [word.replace("$", "") for word in arguments])


class StrictLoader(yaml.SafeLoader):
    """Refuses a key that stands twice, of which PyYAML would take the last without a word."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        assert len({*keys}) == len(keys), f"a key is there twice among {keys}"
        return super().construct_mapping(node, deep)


def refusal(name: str, job: object) -> str:
    """Returns what is wrong with a job file's content; empty: nothing."""
    error = jsonschema.exceptions.best_match(
        jsonschema.Draft202012Validator(SCHEMAS[name]).iter_errors(job)
    )
    return f"{error.json_path}: {error.message}" if error else ""


JOBS = {path.name: path for path in (SKYPILOT, *DSTACK, KUBERNETES)}


def places(job, path=()):
    """The paths of all values inside a job."""
    pairs = job.items() if isinstance(job, dict) else enumerate(job)
    for key, value in pairs:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def at(job, path):
    for key in path:
        job = job[key]
    return job


@pytest.mark.parametrize("name", JOBS)
def test_a_job_file_has_the_keys_and_values_that_its_program_knows(name):
    assert refusal(name, yaml.load(JOBS[name].read_text(), StrictLoader)) == ""


def test_each_job_file_has_a_schema():
    assert JOBS.keys() == SCHEMAS.keys()


@pytest.mark.parametrize("name", JOBS)
def test_a_mistake_anywhere_in_a_job_file_is_refused(name):
    text = JOBS[name].read_text()
    for path in [(), *places(yaml.safe_load(text))]:
        # Copied without the aliases, of which a change to one would change all.
        job = json.loads(json.dumps(yaml.safe_load(text)))
        value = at(job, path)
        if isinstance(value, dict):
            value["no_such_key"] = "1"
        elif isinstance(value, list):
            value.append({"no_such_key": 1})
        else:
            at(job, path[:-1])[path[-1]] = ["another type"]
        assert refusal(name, job), path


def test_the_recipe_that_a_job_trains_unless_told_otherwise_is_there():
    task = yaml.safe_load(DSTACK[1].read_text())
    named = dict(line.split("=", 1) for line in task["env"] if "=" in line)
    for recipe in (named["RECIPE"], yaml.safe_load(SKYPILOT.read_text())["envs"]["RECIPE"]):
        assert (FOLDER.parents[1] / recipe).is_file()


def test_every_volume_that_a_container_mounts_is_there():
    for replicas in yaml.safe_load(KUBERNETES.read_text())["spec"]["pytorchReplicaSpecs"].values():
        pod = replicas["template"]["spec"]
        mounted = [mount["name"] for mount in pod["containers"][0]["volumeMounts"]]
        assert sorted(mounted) == sorted(volume["name"] for volume in pod["volumes"])


def test_a_run_that_was_asked_to_stop_and_has_saved_is_started_again():
    recovery = yaml.safe_load(SKYPILOT.read_text())["resources"]["job_recovery"]
    assert recovery["recover_on_exit_codes"] == [PREEMPTED]
    assert re.search(rf'"\$code" -eq {PREEMPTED}\b', SLURM.read_text())


@pytest.mark.parametrize("name", ["skypilot", "dstack", "slurm"])
def test_the_shell_can_parse_the_script(name, tmp_path):
    script = tmp_path / "script"
    script.write_text(SLURM.read_text() if name == "slurm" else scripts()[name])
    subprocess.run(["bash", "-n", script], check=True)


def test_a_machine_of_skypilot_and_dstack_knows_its_rank_and_where_to_meet():
    for name in ("skypilot", "dstack"):
        for variable in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
            assert re.search(rf"\b{variable}=\S", scripts()[name]), (name, variable)


@pytest.mark.parametrize(
    ("checker", "path"), CHECKED, ids=[f"{checker} {path.name}" for checker, path in CHECKED]
)
def test_the_program_that_reads_it_accepts_the_file(checker, path, tmp_path):
    python = os.environ.get("JOBS_PYTHON")
    if not python:
        pytest.skip("JOBS_PYTHON is not set; `make test-jobs` sets it")
    program = f"import sys; path = sys.argv[1]\n{CHECKS[checker]}"

    def check(file):
        return subprocess.run(
            [python, "-c", program, file],
            cwd=FOLDER.parents[1],
            env=os.environ | {"HOME": str(tmp_path), "SKYPILOT_DISABLE_USAGE_COLLECTION": "1"},
            capture_output=True,
            text=True,
            check=False,
        )

    done = check(path)
    assert done.returncode == 0, done.stderr
    wrong = tmp_path / path.name
    wrong.write_text(path.read_text() + "\nno_such_key: 1\n")
    assert check(wrong).returncode != 0


@pytest.mark.skipif(not shutil.which("rsync"), reason="rsync is not installed")
@pytest.mark.cluster
def test_a_run_goes_on_from_the_bucket_on_new_machines(tmp_path):
    """SkyPilot's script with its variables, twice on two folders that stand for machines."""
    bucket = tmp_path / "kept"
    script = yaml.safe_load(SKYPILOT.read_text())["run"].replace("/kept/", f"{bucket}/")
    script = script.replace("29500", str(29_600 + os.getpid() % 300))

    def train(machine: Path, rank: int, steps: int) -> subprocess.Popen:
        program = machine / "dragoman-env" / "bin" / "dragoman"
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m dragoman "$@"\n')
        program.chmod(0o755)
        recipe = write_recipe(machine)
        recipe.write_text(recipe.read_text().replace("steps = 20\n", f"steps = {steps}\n", 1))
        variables = {
            "HOME": str(machine),
            "RECIPE": recipe.name,
            "RUN": "first",
            "SKYPILOT_NODE_IPS": "127.0.0.1\n127.0.0.1",
            "SKYPILOT_NODE_RANK": str(rank),
            "SKYPILOT_NUM_NODES": "2",
            "OMP_NUM_THREADS": "1",
        }
        return subprocess.Popen(
            ["bash", "-c", script], cwd=machine, env=os.environ | variables, stdout=subprocess.PIPE
        )

    def rent(name: str, steps: int) -> Path:
        machines = [tmp_path / f"{name}-{rank}" for rank in range(2)]
        both = [train(machine, rank, steps) for rank, machine in enumerate(machines)]
        assert [(process.communicate(), process.returncode)[1] for process in both] == [0, 0]
        return machines[0]

    shutil.rmtree(rent("first", 10))
    shutil.rmtree(tmp_path / "first-1")
    run = rent("second", 15) / "runs" / "first"
    assert sorted(losses(run)) == list(range(1, 16))
    assert (run / "checkpoints" / "best").exists()
    assert not [path for path in bucket.rglob("*") if path.is_symlink()]
    assert not list(bucket.rglob(".*"))


# What dask-jobqueue 0.9 offers of it, with workers in this process instead of jobs.
JOBQUEUE = """
from distributed import LocalCluster, Security

class SLURMCluster(LocalCluster):
    def __init__(self, *, job_name, cores, processes, memory, walltime, python, security,
                 shared_temp_directory):
        assert security is True and processes <= cores
        super().__init__(n_workers=0, threads_per_worker=1, processes=False, protocol="tls://",
                         security=Security.temporary(), dashboard_address=":0")

    def scale(self, n=None, jobs=None):
        super().scale(n if jobs is None else jobs)
"""


def test_the_corpus_is_prepared_by_workers_of_a_job_queue(tmp_path):
    recipe = write_recipe(tmp_path)
    (tmp_path / "dask_jobqueue.py").write_text(JOBQUEUE)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, SLURM_DASK, recipe],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "prepared" / "data.json").exists()
    assert "Dask workers with 4 threads, which see the files" in done.stdout
