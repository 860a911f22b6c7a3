"""Runs with a mirror as commands: what a person sees, and what is never shown."""

import json
import os
import re
import shutil
import signal
import tempfile

import pytest
from digits_language import write_recipe
from object_server import SECRET, environment, make_bucket, proxy_to, refusing_server, s3_server
from processes import dragoman, sentence, start_dragoman

from dragoman.rundir import RunDir
from dragoman.telemetry.events import Incident
from dragoman.telemetry.read.events import read_events

MIRROR = ["--set", "checkpoints.mirror=s3://bucket/runs"]
FEW = ["--set", "training.steps=10"]


@pytest.fixture(scope="module")
def port():
    with s3_server() as port:
        make_bucket(port, "bucket")
        yield port


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    return write_recipe(tmp_path_factory.mktemp("digits"))


def incidents(run):
    events = [recorded.stamped.event for recorded in read_events(RunDir(run), rank=0)]
    return [e for e in events if isinstance(e, Incident) and e.category == "mirror"]


def test_a_lost_machine_is_replaced_and_the_report_comes_from_the_mirror(port, recipe, tmp_path):
    env = environment(port)
    first, second = tmp_path / "one" / "x", tmp_path / "two" / "x"
    done = dragoman("train", recipe, "--run", first, *MIRROR, *FEW, env=env)
    assert done.returncode == 0, done.stderr
    shutil.rmtree(first)
    done = dragoman("train", recipe, "--run", second, *MIRROR, env=env)
    assert done.returncode == 0, done.stderr
    assert "going on after step 10" in done.stdout + done.stderr
    assert incidents(second) == []
    (tmp_path / "desk").mkdir()
    done = dragoman("report", "s3://bucket/runs/x", env=env, cwd=tmp_path / "desk")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "desk" / "report-of-x" / "report.json").read_text()
    assert '"s3://bucket/runs/x"' in page
    assert SECRET not in page + done.stdout + done.stderr
    # The mirror holds checkpoints, and commands name what is here or will be.
    sizes = [path.stat().st_size for path in (second / "checkpoints" / "latest").iterdir()]
    answers = json.loads(page)["answers"]
    figures = [figure for answer in answers for figure in answer["evidence"]]
    (size,) = [figure for figure in figures if figure["name"] == "newest checkpoint"]
    assert size["value"] == sum(sizes)
    assert not re.search(rf"{tempfile.gettempdir()}/tmp\w+/x", page)
    assert (tmp_path / "desk" / "report-of-x" / "config.toml").exists()
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


@pytest.mark.cluster
def test_training_goes_on_where_only_the_mirror_fails_and_says_so_once(port, recipe, tmp_path):
    run = tmp_path / "y"
    with proxy_to(port) as proxy:
        env = environment(proxy.port)
        done = dragoman("train", recipe, "--run", run, *MIRROR, *FEW, env=env)
        assert done.returncode == 0, done.stderr
        proxy.is_closed = True
        done = dragoman("train", recipe, "--run", run, *MIRROR, env=env)
    assert done.returncode == 0, done.stderr
    shown = done.stdout + done.stderr
    assert shown.count("training goes on, and the mirror is tried again") == 1
    assert "does not hold the last state" in shown
    assert "Traceback" not in shown


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("status", "code", "advice"),
    [
        (403, "AccessDenied", "grant"),
        (404, "NoSuchBucket", "create it"),
        (403, "RequestTimeTooSkewed", "set the clock"),
        (403, "QuotaExceeded", "quota"),
    ],
)
def test_a_new_run_whose_mirror_cannot_be_used_is_refused(status, code, advice, recipe, tmp_path):
    with refusing_server(status, code) as refusal:
        env = environment(refusal.port)
        done = dragoman("train", recipe, "--run", tmp_path / "z", *MIRROR, env=env)
    assert advice in sentence(done, 1)
    assert SECRET not in done.stdout + done.stderr
    assert not (tmp_path / "z").exists()


def test_credentials_are_missed_before_anything_is_written(port, recipe, tmp_path):
    env = environment(port)
    del env["AWS_SECRET_ACCESS_KEY"]
    done = dragoman("train", recipe, "--run", tmp_path / "z", *MIRROR, env=env)
    assert "AWS_SECRET_ACCESS_KEY" in sentence(done, 2)
    assert not (tmp_path / "z").exists()
    done = dragoman("report", "s3://key:geheim@bucket/x", env=env)
    assert "geheim" not in sentence(done, 2)
    setting = "checkpoints.mirror=s3://key:geheim@bucket/x"
    done = dragoman("train", recipe, "--run", tmp_path / "z", "--set", setting, env=env)
    assert "environment" in sentence(done, 2)


@pytest.mark.cluster
def test_somebody_who_does_not_wait_for_the_last_upload_stops_it(port, recipe, tmp_path):
    """A store that hangs, at the end of a run: one Ctrl-C, and no trace of the interpreter."""
    run = tmp_path / "w"
    with proxy_to(port) as proxy:
        first = [*MIRROR, "--set", "training.steps=5"]
        done = dragoman("train", recipe, "--run", run, *first, env=environment(proxy.port))
        assert done.returncode == 0, done.stderr
        process = start_dragoman(
            *("train", recipe, "--run", run, *MIRROR, *FEW),
            env=environment(proxy.port),
            start_new_session=True,
        )
        assert process.stdout
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "going on after step 5" in line:
                proxy.delay_s = 1e6  # nothing passes any more
            if "waiting for the last upload" in line:
                break
        os.killpg(process.pid, signal.SIGINT)
        output, errors = process.communicate()
    shown = "".join(lines) + output + errors
    assert "Traceback" not in shown
    assert "Fatal" not in shown
    assert "does not hold the last state" in shown
    assert process.returncode == 0, shown
    assert (run / "checkpoints" / "step-00000010" / "manifest.json").exists()
