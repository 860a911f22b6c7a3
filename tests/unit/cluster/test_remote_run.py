import json
import shlex
from pathlib import Path

from dragoman.cluster.hosts import Host, load_cluster
from dragoman.cluster.launch import start_variables
from dragoman.cluster.network import Interface
from dragoman.cluster.outlook import NoOutlook
from dragoman.cluster.preflight import Ready
from dragoman.cluster.remote_run import Receiver, jobs_of, prepared_there
from dragoman.config import parse_config
from dragoman.distributed.launchers import HOST_NAME
from dragoman.installation import SETUP_COMMAND
from dragoman.rundir import RunDir
from dragoman.training.manifest import START_FOLDER, START_OPTIONS

INTERFACES = {"a": Interface("ens5", "10.0.3.1", 24), "b": Interface("ib0", "10.0.3.2", 24)}


def jobs(run, config, **more):
    cluster = load_cluster("a,b").model_copy(update=more)
    run.root.mkdir(parents=True)
    run.id.write_text("ab12" * 8)
    variables = start_variables(cluster.given, 2, False)
    ready = Ready(cluster, {}, INTERFACES, {"a": 2, "b": 3})
    return jobs_of(ready, config, run, ".home-1", variables)


def test_every_host_starts_its_ranks_of_one_run(digits_config, tmp_path, monkeypatch):
    monkeypatch.delenv("GLOO_SOCKET_IFNAME", raising=False)
    first, second = jobs(RunDir(tmp_path / "runs" / "mine"), digits_config)
    assert [(job.first_rank, job.workers, job.ranks) for job in (first, second)] == [
        (0, 2, 5),
        (2, 3, 5),
    ]
    assert (first.secret, first.start) == (second.secret, second.start)
    assert first.secret
    assert first.run == second.run == "runs/mine"
    assert first.run_id == "ab12" * 8
    assert [job.environment["GLOO_SOCKET_IFNAME"] for job in (first, second)] == ["ens5", "ib0"]
    assert second.environment["NCCL_SOCKET_IFNAME"] == "=ib0"
    assert first.relays
    for job in (first, second):
        assert job.environment[START_OPTIONS] == "--hosts a,b --workers 2"
        assert job.environment[START_FOLDER] == str(Path.cwd())
        setup = ["dragoman", "setup", str(tmp_path / "runs/mine/config.toml"), "--hosts", "a,b"]
        assert shlex.split(job.environment[SETUP_COMMAND]) == setup
    assert [job.environment[HOST_NAME] for job in (first, second)] == ["a", "b"]


def test_a_host_gets_the_recipe_with_the_data_where_it_is_there(digits_config, tmp_path):
    job, _ = jobs(RunDir(tmp_path / "mine"), digits_config)
    ((name, text),) = job.files.items()
    assert job.arguments == ["train", name, "--run", "runs/mine"]
    there = parse_config(text, name)
    assert there.prepared_folder == Path(prepared_there(digits_config))
    assert there.training == digits_config.training


def test_public_addresses_are_allowed_only_by_the_host_list(digits_config, tmp_path):
    job, _ = jobs(RunDir(tmp_path / "one"), digits_config)
    assert "DRAGOMAN_ALLOW_PUBLIC" not in job.environment
    job, _ = jobs(RunDir(tmp_path / "two"), digits_config, allow_public=True)
    assert job.environment["DRAGOMAN_ALLOW_PUBLIC"] == "1"


def test_records_of_the_hosts_come_home(tmp_path):
    run = RunDir(tmp_path)
    receive = Receiver(run, NoOutlook())
    name = "events/attempt-001-rank-0001.jsonl"
    lines = [json.dumps({"step": step}) + "\n" for step in (1, 2)]
    receive(Host(name="b"), {"record": name, "begin": 0, "text": lines[0]})
    receive(Host(name="b"), {"record": name, "begin": len(lines[0]), "text": lines[1]})
    board = "tensorboard/b/events.out.tfevents.1.b.2.0"
    receive(Host(name="b"), {"record": board, "begin": 0, "base64": "AP8="})
    assert (tmp_path / board).read_bytes() == b"\x00\xff"
    receive(Host(name="b"), {"record": "../outside", "begin": None, "text": "x"})
    receive(Host(name="b"), {"something": "of a later version"})
    assert (tmp_path / name).read_text() == "".join(lines)
    assert not (tmp_path.parent / "outside").exists()
