import shlex

from dragoman.cluster.launch import local_job, start_variables
from dragoman.rundir import RunDir
from dragoman.training.manifest import START_COMMAND


def test_workers_of_one_machine_talk_over_loopback(monkeypatch):
    monkeypatch.delenv("GLOO_SOCKET_IFNAME", raising=False)
    job = local_job(["train", "x.toml"], 2)
    assert job.environment["GLOO_SOCKET_IFNAME"] == "lo"
    assert job.store_port == 0
    assert job.arguments == ["train", "x.toml"]


def test_every_start_has_a_secret_of_its_own():
    assert local_job([], 2).secret != local_job([], 2).secret


def test_the_agent_of_a_run_knows_its_folder(tmp_path):
    run = RunDir(tmp_path)
    run.id.write_text("ab12" * 8)
    job = local_job([], 2, run=run)
    assert (job.run, job.run_id) == (str(tmp_path), "ab12" * 8)


def test_workers_are_told_what_was_typed():
    typed = ["dragoman", "train", "my recipe.toml", "--workers", "2"]
    variables = start_variables("", 2, False, typed)
    assert shlex.split(variables[START_COMMAND]) == typed
    assert start_variables("", 2, False)[START_COMMAND] == ""


def test_what_the_user_has_set_stays(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "eth7")
    environment = local_job([], 2).environment
    assert environment == {"OMP_NUM_THREADS": "3", "GLOO_SOCKET_IFNAME": "eth7"}
