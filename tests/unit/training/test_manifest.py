import sys
from pathlib import Path

import pytest
import torch

from dragoman.config import load_config
from dragoman.errors import CorruptFileError
from dragoman.preparation import prepare
from dragoman.rundir import RunDir, read_json, write_json
from dragoman.shards.passport import PreparedData
from dragoman.training.manifest import (
    START_COMMAND,
    START_FOLDER,
    START_OPTIONS,
    read_manifest,
    record_attempt,
    recorded_command,
)

MEMBERS = [{"host": "n1", "device": "cpu"}]


@pytest.fixture
def prepared(digits_config):
    prepare(digits_config)
    return PreparedData.open(digits_config.prepared_folder)


def test_a_new_run_has_none(tmp_path):
    assert read_manifest(RunDir(tmp_path)) is None


def test_attempts_are_added_and_the_data_stays_what_it_was(tmp_path, digits_config, prepared):
    run = RunDir(tmp_path / "run")
    for attempt in (1, 2):
        record_attempt(run, digits_config, prepared, attempt, MEMBERS)
    manifest = read_manifest(run)
    assert manifest.data_sha256 == prepared.passport.content_hash
    assert [a["attempt"] for a in manifest.attempts] == [1, 2]
    assert manifest.attempts[0]["members"] == MEMBERS
    assert manifest.micro_batch_tokens == digits_config.training.micro_batch_tokens
    recorded = manifest.attempts[0]["versions"]["torch"]  # without the build, such as +cu130
    assert torch.__version__.partition("+")[0] == recorded.partition("+")[0]


def test_how_the_workers_were_started_is_recorded(tmp_path, digits_config, prepared, monkeypatch):
    run = RunDir(tmp_path / "run")
    record_attempt(run, digits_config, prepared, 1, MEMBERS)
    monkeypatch.setenv(START_OPTIONS, "--hosts 'my hosts.toml' --workers 2")
    record_attempt(run, digits_config, prepared, 2, MEMBERS)
    monkeypatch.setenv(START_FOLDER, "/home/u")
    record_attempt(run, digits_config, prepared, 3, MEMBERS)
    alone, started, elsewhere = read_manifest(run).attempts
    assert (alone["folder"], elsewhere["folder"]) == (str(Path.cwd()), "/home/u")
    assert (alone["options"], alone["launcher"]) == ([], "")
    assert started["options"] == ["--hosts", "my hosts.toml", "--workers", "2"]


def test_the_command_is_the_one_that_was_typed(tmp_path, digits_config, prepared, monkeypatch):
    run = RunDir(tmp_path / "run")
    monkeypatch.setattr(sys, "argv", ["/venv/bin/dragoman", "train", "there.toml"])
    record_attempt(run, digits_config, prepared, 1, MEMBERS)
    monkeypatch.setenv(START_COMMAND, "dragoman train 'my recipe.toml' --hosts a,b")
    record_attempt(run, digits_config, prepared, 2, MEMBERS)
    alone, far = read_manifest(run).attempts
    inner = ["dragoman", "train", "there.toml"]
    assert (alone["command"], alone["rank_0_command"]) == (inner, inner)
    assert far["command"] == ["dragoman", "train", "my recipe.toml", "--hosts", "a,b"]
    assert far["rank_0_command"] == inner


def test_no_secret_is_recorded(digits, monkeypatch):
    config = load_config(digits, ["notify.webhook_variable=MY_HOOK"])
    monkeypatch.setenv("MY_HOOK", "https://x.org/T00/B00")
    words = ["train", "--set", "a=https://x.org/T00/B00", "--set", "b=ftp://me:pw@y.org/z"]
    assert recorded_command(words, config) == [
        *("dragoman", "train", "--set", "a=***", "--set", "b=ftp://***@y.org/z")
    ]


def test_what_a_later_version_adds_is_kept(tmp_path, digits_config, prepared):
    run = RunDir(tmp_path / "run")
    write_json(run.manifest, {"future": 1})
    record_attempt(run, digits_config, prepared, 1, MEMBERS)
    assert read_json(run.manifest)["future"] == 1


def test_a_damaged_one_is_named(tmp_path):
    run = RunDir(tmp_path)
    write_json(run.manifest, {"attempts": 3})
    with pytest.raises(CorruptFileError, match=r"manifest\.json"):
        read_manifest(run)
