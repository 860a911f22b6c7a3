"""`dragoman train --hosts` on real hosts: namespaces with an sshd each, reached over real ssh."""

import os
import signal
from pathlib import Path

import pytest
from processes import ENDLESS, dragoman, losses, start_dragoman, wait_for_step, wait_until

from dragoman.checkpoints.finding import find_checkpoint
from dragoman.cli.train import PREEMPTED
from dragoman.rundir import RunDir, read_json
from dragoman.telemetry.read.events import read_events
from dragoman.telemetry.record.log_file import LOG_NAME

pytestmark = pytest.mark.timeout(240)

WRITERS = {"launcher", "node1-agent", "node1-rank-0000", "node2-agent", "node2-rank-0001"}
TENSORBOARD = ["--set", "telemetry.tensorboard=true"]
THREE_RANKS = ["--set", "training.micro_batch_tokens=150"]


def ranks_of(run):
    return {recorded.rank for recorded in read_events(RunDir(run))}


def logs_of(run):
    """Writer -> what its newest log at home holds."""
    return {
        LOG_NAME.fullmatch(path.name)["writer"]: path.read_text()
        for path in sorted((run / "logs").iterdir())
    }


def test_two_hosts_train_like_one_machine_and_everything_comes_home(
    digits, host_list, processes_of, tmp_path
):
    run = tmp_path / "runs" / "far"
    done = dragoman("train", digits, "--run", run, "--hosts", host_list(2), *TENSORBOARD)
    assert done.returncode == 0, done.stderr
    assert "copying" in done.stdout
    assert "node1 0 | finished at step 20" in done.stdout
    assert read_json(RunDir(run).status)["state"] == "finished"
    assert ranks_of(run) == {0, 1}
    assert find_checkpoint(run / "checkpoints", "latest").step == 20
    assert find_checkpoint(run / "checkpoints", "best").step <= 20
    members = read_json(RunDir(run).manifest)["attempts"][0]["members"]
    assert [member["host"] for member in members] == ["node1", "node2"]
    assert not list(run.glob(".home-*"))
    attempt = read_json(RunDir(run).manifest)["attempts"][0]
    assert attempt["command"][:3] == ["dragoman", "train", str(digits)]
    assert "--hosts" in attempt["command"]
    assert attempt["rank_0_command"][:3] == ["dragoman", "train", "recipes/digits.toml"]
    logs = logs_of(run)
    assert set(logs) == WRITERS
    assert "finished at step 20" in logs["node1-rank-0000"]
    assert "node1 0 | finished at step 20" in logs["launcher"]
    assert "rank 1 ended, code 0" in logs["node2-agent"]
    for node in ("node1", "node2"):
        there = tmp_path / node / "runs" / "far"
        for folder in ("logs", "tensorboard"):
            files = [path for path in (there / folder).rglob("*") if path.is_file()]
            assert files
            for path in files:
                assert (run / path.relative_to(there)).read_bytes() == path.read_bytes()
    assert processes_of("node1") == processes_of("node2") == {}

    near = tmp_path / "near"
    assert dragoman("train", digits, "--run", near, "--workers", 2).returncode == 0
    assert losses(run) == pytest.approx(losses(near), abs=1e-5)

    # The data is there now, and the run goes on from the checkpoint of the first host.
    more = dragoman(
        *("train", digits, "--run", run, "--hosts", host_list(2), "--set", "training.steps=25")
    )
    assert more.returncode == 0, more.stderr
    assert "copying" not in more.stdout
    assert "going on after step 20" in more.stdout
    assert sorted(losses(run)) == list(range(1, 26))


def test_ctrl_c_stops_three_hosts_saves_and_leaves_nothing_running(
    digits, host_list, processes_of, tmp_path
):
    run = tmp_path / "runs" / "stopped"
    hosts = host_list(3)
    command = ["train", digits, "--run", run, "--hosts", hosts, *THREE_RANKS]
    process = start_dragoman(*command, *ENDLESS)
    wait_for_step(run, 3)  # records come home while it runs
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=100)
    assert process.returncode == PREEMPTED, output + errors
    assert "Traceback" not in output + errors
    status = read_json(RunDir(run).status)
    assert status["state"] == "preempted"
    assert find_checkpoint(run / "checkpoints", "latest").step == status["step"]
    assert ranks_of(run) == {0, 1, 2}
    assert not any(processes_of(f"node{number}") for number in (1, 2, 3))

    last = status["step"] + 2
    more = dragoman(*command, "--set", f"training.steps={last}")
    assert more.returncode == 0, more.stderr
    assert f"going on after step {status['step']:,}" in more.stdout


def test_when_the_launcher_is_killed_the_hosts_save_and_end(
    digits, host_list, processes_of, tmp_path
):
    run = tmp_path / "runs" / "orphaned"
    process = start_dragoman("train", digits, "--run", run, "--hosts", host_list(2), *ENDLESS)
    wait_for_step(run, 3)
    process.kill()
    process.communicate()
    wait_until(lambda: not processes_of("node1") | processes_of("node2"))
    there = RunDir(tmp_path / "node1" / "runs" / "orphaned")
    assert read_json(there.status)["state"] == "preempted"
    kept = logs_of(there.root)["node1-agent"]
    assert "the launcher is gone" in kept

    # What a host wrote after that comes home with the next start.
    last = read_json(there.status)["step"] + 2
    more = ["--skip-check", "--set", f"training.steps={last}"]
    done = dragoman("train", digits, "--run", run, "--hosts", host_list(2), *more)
    assert done.returncode == 0, done.stderr
    agents = sorted((run / "logs").glob("node1-agent-*"))
    assert agents[0].read_text() == kept


def test_logs_come_home_after_a_worker_was_killed(digits, host_list, processes_of, tmp_path):
    run = tmp_path / "runs" / "killed"
    command = ["train", digits, "--run", run, "--hosts", host_list(2), *ENDLESS, *TENSORBOARD]
    process = start_dragoman(*command)
    wait_for_step(run, 3)
    names = {pid: Path(f"/proc/{pid}/comm").read_text().strip() for pid in processes_of("node2")}
    (worker,) = (pid for pid, name in names.items() if name == "dragoman-1")
    os.kill(worker, signal.SIGKILL)
    output, errors = process.communicate(timeout=100)
    assert process.returncode == 1, output + errors
    logs = logs_of(run)
    assert set(logs) == WRITERS
    assert "error: rank 1 on node2 was ended by SIGKILL" in logs["node2-agent"]
    assert "rank 1 on node2 was ended by SIGKILL" in logs["node1-rank-0000"]
    assert "rank 1 on node2 was ended by SIGKILL" in logs["launcher"]
    assert list((run / "tensorboard").glob("events.out.*"))
    assert not processes_of("node1") | processes_of("node2")


def test_a_failing_rank_ends_all_hosts_with_its_sentence(digits, host_list, processes_of, tmp_path):
    run = tmp_path / "run"
    done = dragoman("train", digits, "--run", run, "--hosts", host_list(3))
    assert done.returncode == 2
    assert "3 workers, but a step has only 2 micro-batches" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert not any(processes_of(f"node{number}") for number in (1, 2, 3))


def test_a_run_of_the_same_name_is_not_taken_for_another_one(digits, host_list, tmp_path):
    hosts = host_list(2)
    first, second = tmp_path / "one" / "model", tmp_path / "other" / "model"
    assert dragoman("train", digits, "--run", first, "--hosts", hosts).returncode == 0
    done = dragoman("train", digits, "--run", second, "--hosts", hosts)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "runs/model on this host belongs to another run" in done.stdout + done.stderr
    assert not (second / "checkpoints" / "latest").exists()
    assert not (second / "events").exists()
    again = dragoman("train", digits, "--run", first, "--hosts", hosts)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "is complete" in again.stdout
