"""Notifications of real trainings: what is told, and that nothing of it is in training's way."""

import os
import signal
import subprocess
from contextlib import suppress

import psutil
import pytest
from processes import (
    ENDLESS,
    dragoman,
    losses,
    sentence,
    start_dragoman,
    wait_for_step,
    wait_until,
    worker_processes,
)
from webhook_server import SECRET, webhook_server

PROGRAM = "dragoman.watch.notifying"
NOTIFY = ["--set", "notify.webhook_variable=HOOK"]


@pytest.fixture
def webhook():
    with webhook_server() as server:
        yield server
        server.over.set()
        wait_until(lambda: not notifiers(server.address))


def with_hook(address):
    return os.environ | {"OMP_NUM_THREADS": "1", "HOOK": address}


def notifiers(address):
    """Those that were started with this address; not those of other tests."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if PROGRAM in process.cmdline() and process.environ().get("HOOK") == address:
                found.append(process)
    return found


def files_with_secret(folder):
    return [
        path
        for path in folder.rglob("*")
        if path.is_file() and SECRET.encode() in path.read_bytes()
    ]


def test_the_end_of_a_run_is_told_and_the_address_stands_nowhere(digits, tmp_path, webhook):
    done = dragoman(
        *("train", digits, "--run", tmp_path / "run", "--set", "training.steps=2", *NOTIFY),
        env=with_hook(webhook.address),
    )
    assert done.returncode == 0, done.stderr
    message = webhook.wait_for(1)[-1]
    assert (message["kind"], message["state"], message["step"]) == ("end", "finished", 2)
    assert SECRET not in done.stdout + done.stderr
    dragoman("report", tmp_path / "run")
    assert files_with_secret(tmp_path) == []


def test_a_webhook_that_hangs_changes_nothing(digits, tmp_path, webhook):
    webhook.hangs = True
    two_steps = ["--set", "training.steps=2"]
    alone = dragoman("train", digits, "--run", tmp_path / "alone", *two_steps)
    # Reads the output to its end: a process that kept it open would keep this waiting.
    beside = dragoman(
        *("train", digits, "--run", tmp_path / "beside", *two_steps, *NOTIFY),
        env=with_hook(webhook.address),
    )
    assert (alone.returncode, beside.returncode) == (0, 0), beside.stderr
    assert losses(tmp_path / "beside") == losses(tmp_path / "alone")
    for process in notifiers(webhook.address):
        process.kill()


def test_a_killed_rank_is_told_by_name_and_then_the_end(digits, tmp_path, webhook):
    run = tmp_path / "run"
    process = start_dragoman(
        *("train", digits, "--run", run, "--workers", 2, "--oversubscribe", *ENDLESS, *NOTIFY),
        env=with_hook(webhook.address),
    )
    try:
        wait_for_step(run, 3)
        os.kill(worker_processes(run)[1], signal.SIGKILL)
        process.communicate()
    finally:
        stop(process)
    lost, end = webhook.wait_for(2)[-2:]
    assert (lost["kind"], end["kind"]) == ("lost", "end")
    assert lost["lost"].startswith("rank 1 on ")
    assert end["state"] == "failed"
    assert process.returncode == 1


@pytest.mark.cluster
@pytest.mark.timeout(240)  # workers that a killed launcher may have left have 35 s to save
def test_a_killed_launcher_is_told(digits, tmp_path, webhook):
    run = tmp_path / "run"
    process = start_dragoman(
        *("train", digits, "--run", run, *ENDLESS, *NOTIFY), env=with_hook(webhook.address)
    )
    try:
        wait_for_step(run, 3)
        wait_until(lambda: notifiers(webhook.address))
    finally:
        stop(process)
    (message,) = webhook.wait_for(1)
    assert (message["kind"], message["state"]) == ("end", "broken off")


@pytest.mark.cluster
def test_a_killed_notifier_changes_nothing(digits, tmp_path, webhook):
    run = tmp_path / "run"
    process = start_dragoman(
        *("train", digits, "--run", run, *ENDLESS, *NOTIFY), env=with_hook(webhook.address)
    )
    try:
        wait_until(lambda: notifiers(webhook.address))
        (killed,) = notifiers(webhook.address)
        killed.kill()
        wait_until(lambda: not psutil.pid_exists(killed.pid))  # no zombie either
        wait_for_step(run, 3)
        process.send_signal(signal.SIGTERM)
        process.communicate()
    finally:
        stop(process)
    assert process.returncode == 75
    assert webhook.posts == []


def test_a_command_is_told_too(digits, tmp_path):
    told = tmp_path / "told"
    done = dragoman(
        *("train", digits, "--run", tmp_path / "run", "--set", "training.steps=2"),
        *("--set", f'notify.command=["sh", "-c", "echo $DRAGOMAN_KIND >> {told}"]'),
        env=with_hook(str(told)),
    )
    assert done.returncode == 0, done.stderr
    wait_until(told.exists)
    wait_until(lambda: told.read_text() == "end\n")
    wait_until(lambda: not notifiers(str(told)))


def test_what_cannot_work_is_refused_before_anything_is_written(digits, tmp_path):
    run = tmp_path / "run"
    said = sentence(dragoman("train", digits, "--run", run, *NOTIFY), 2)
    assert "HOOK is not set" in said
    hidden = ["--set", f"notify.webhook_variable=https://host/{SECRET}"]
    said = sentence(dragoman("train", digits, "--run", run, *hidden), 2)
    assert "notify.webhook_variable" in said
    assert SECRET not in said
    assert not run.exists()


def test_a_test_message_is_sent_from_the_command_line(digits, webhook):
    done = dragoman("config", digits, "--test-notify", *NOTIFY, env=with_hook(webhook.address))
    assert (done.returncode, webhook.kinds()) == (0, ["test"])


def stop(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate()
