"""Runs whose data arrives while they train: the same bits, within the limit, waits that show."""

import os
import shutil
import threading

import pytest
from digits_blocks import PAIRS, SHARDS, published, streamed, write_blocks
from object_server import PREFIXES, credentials, make_bucket, s3_server
from recorded import events
from safetensors.numpy import load_file

from dragoman.checkpoints.names import MODEL, OPTIMIZER
from dragoman.config import load_config
from dragoman.errors import RemoteError
from dragoman.report.write import read_report
from dragoman.rundir import RunDir
from dragoman.shards import arrival as arrival_module
from dragoman.shards.remote import publish
from dragoman.storage import Store, parse_address
from dragoman.telemetry.events import StepDone
from dragoman.training.train import train

STEPS = 28
"""Of which an epoch has fewer, so that blocks come back."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("blocks")
    recipe, prepared = write_blocks(folder)
    return recipe, prepared, published(prepared, folder / "there")


@pytest.fixture(scope="module")
def straight(made, tmp_path_factory):
    """A run with all data on its disk."""
    recipe, prepared, _ = made
    run = RunDir(tmp_path_factory.mktemp("straight") / "run")
    settings = {"data.prepared": str(prepared.folder), "training.steps": STEPS}
    ending = train(load_config(recipe, settings), run)
    assert ending.state == "finished"
    return run


def weights(run):
    newest = run.checkpoints / "latest"
    return [load_file(newest / name) for name in (MODEL, OPTIMIZER)]


def assert_same_bits(one, other):
    for mine, theirs in zip(weights(one), weights(other), strict=True):
        assert mine.keys() == theirs.keys()
        assert all((mine[name] == theirs[name]).all() for name in mine)


@pytest.fixture
def counted(monkeypatch):
    """The most bytes of tokens that were in a folder at any time, with the file on its way."""
    most = []
    fetch = arrival_module.fetch_file

    def measured(store, folder, file, vocabulary):
        there = sum(path.stat().st_size for path in folder.rglob("train-*.tokens.npy"))
        most.append(there + file.bytes)
        fetch(store, folder, file, vocabulary)

    monkeypatch.setattr(arrival_module, "fetch_file", measured)
    return most


def two_blocks(prepared):
    return sum(sorted(file.bytes for file in prepared.passport.late_files)[-2:])


def test_a_run_through_a_small_cache_resumed_with_an_empty_one_has_the_same_bits(
    made, straight, tmp_path, counted
):
    recipe, prepared, address = made
    run, folder, limit = RunDir(tmp_path / "run"), tmp_path / "here", two_blocks(prepared)
    config = {"data__prepared": str(folder), "data__prepared_max_bytes": limit}
    for steps in (10, STEPS):  # in the middle of a block
        ending = train(streamed(recipe, address, training__steps=steps, **config), run)
        assert (ending.state, ending.step) == ("finished", steps)
        assert len(list(folder.rglob("train-*.tokens.npy"))) <= 2 < SHARDS
        shutil.rmtree(folder)
    assert max(counted) <= limit
    assert len(counted) > SHARDS
    assert_same_bits(straight, run)


def test_blocks_belong_to_the_run_and_where_data_comes_from_does_not(made, straight):
    recipe, prepared, _ = made
    settings = {"data.prepared": str(prepared.folder), "training.steps": STEPS}
    other = load_config(recipe, settings | {"data.block_pairs": 2 * PAIRS})
    with pytest.raises(Exception, match=r"data\.block_pairs = 120, and now it is 240"):
        train(other, straight)


def test_late_shards_are_waited_for_where_input_is_and_the_report_says_so(
    made, tmp_path, monkeypatch
):
    """Every block, of one step each, is held back until somebody has waited for it for a while."""
    recipe, prepared, address = made
    waits = threading.Event()
    is_here, fetch = arrival_module.Arrival.is_here, arrival_module.fetch_file

    def seen(self, block):
        found = is_here(self, block)
        if not found:
            waits.set()
        return found

    def held_back(store, folder, file, vocabulary):
        if threading.current_thread().name == "arrival":
            waits.wait(60)
            threading.Event().wait(0.5)
            waits.clear()
        fetch(store, folder, file, vocabulary)

    monkeypatch.setattr(arrival_module.Arrival, "is_here", seen)
    monkeypatch.setattr(arrival_module, "fetch_file", held_back)
    run = RunDir(tmp_path / "run")
    config = streamed(
        recipe,
        address,
        data__prepared=str(tmp_path / "here"),
        data__prepared_max_bytes=two_blocks(prepared),
        training__tokens_per_update=1600,
        training__steps=10,
    )
    train(config, run)
    steps = events(run, StepDone)
    waited = [step for step in steps if step.parts_s["data"] > 0.1]
    assert len(waited) >= 5
    report = read_report(run)
    said = {answer.key: answer for answer in report.answers}
    assert said["network"].verdict == "input-bound"
    assert any(address in advice.text for advice in said["network"].advice)


def test_a_store_that_fails_stops_the_run_with_a_checkpoint_from_which_it_goes_on(
    made, straight, tmp_path, monkeypatch
):
    recipe, _, address = made
    fetch, fetched = arrival_module.fetch_file, []

    def break_off(store, folder, file, vocabulary):
        if len(fetched) == 2:
            raise RemoteError(f"{store.address}: the connection broke", "broken")
        fetched.append(file.name)
        fetch(store, folder, file, vocabulary)

    run = RunDir(tmp_path / "run")
    config = streamed(recipe, address, data__prepared=str(tmp_path / "here"), training__steps=STEPS)
    with monkeypatch.context() as patched:
        patched.setattr(arrival_module, "fetch_file", break_off)
        ending = train(config, run)
    assert ending.state == "preempted"
    assert "the connection broke" in ending.reason
    assert 0 < ending.step < STEPS
    assert train(config, run).state == "finished"
    assert_same_bits(straight, run)


def test_a_real_object_server_gives_the_same_bits(made, straight, tmp_path, monkeypatch, counted):
    recipe, prepared, _ = made
    for name in [name for name in os.environ if name.startswith(PREFIXES)]:
        monkeypatch.delenv(name)
    with s3_server() as port:
        for name, value in credentials(port).items():
            monkeypatch.setenv(name, value)
        make_bucket(port, "bucket")
        address = "s3://bucket/prepared/digits"
        publish(prepared, Store(parse_address(address)))
        limit, run = two_blocks(prepared), RunDir(tmp_path / "run")
        train(
            streamed(
                recipe,
                address,
                data__prepared=str(tmp_path / "here"),
                data__prepared_max_bytes=limit,
                training__steps=STEPS,
            ),
            run,
        )
    assert max(counted) <= limit
    assert_same_bits(straight, run)
