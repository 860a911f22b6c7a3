"""Runs whose data arrives while they train: the same bits, within the limit, waits that show."""

import logging
import os
import shutil
import signal
import threading

import pytest
from digits_blocks import PAIRS, SHARDS, published, streamed, write_blocks
from object_server import (
    PREFIXES,
    credentials,
    environment,
    make_bucket,
    proxy_to,
    s3_server,
)
from processes import start_dragoman, steps, wait_until
from recorded import events
from safetensors.numpy import load_file

from dragoman import console
from dragoman.checkpoints import background
from dragoman.checkpoints.names import MODEL, OPTIMIZER
from dragoman.config import load_config
from dragoman.errors import RemoteError, RunError, StorageError
from dragoman.report.write import read_report
from dragoman.rundir import RunDir
from dragoman.shards import arrival as arrival_module
from dragoman.shards.remote import fetch_beginning, publish
from dragoman.storage import Patience, Store, parse_address
from dragoman.telemetry.events import AttemptEnded, StepDone
from dragoman.training import data as data_module
from dragoman.training.interruption import Interruption
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
    for number in (10, STEPS):  # in the middle of a block
        ending = train(streamed(recipe, address, training__steps=number, **config), run)
        assert (ending.state, ending.step) == ("finished", number)
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
    taken = events(run, StepDone)
    waited = [step for step in taken if step.parts_s["data"] > 0.1]
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


@pytest.fixture
def starving(monkeypatch):
    """An event that is set once a step waits for tokens that are not there."""
    waits, has = threading.Event(), arrival_module.Arrival.has

    def seen(self, block):
        found = has(self, block)
        if not found and threading.current_thread() is threading.main_thread():
            waits.set()
        return found

    monkeypatch.setattr(arrival_module.Arrival, "has", seen)
    return waits


def after(number, action, monkeypatch):
    """Lets so many files of tokens arrive, and has `action` take the place of all others."""
    fetch, fetched = arrival_module.fetch_file, []

    def replaced(store, folder, file, vocabulary):
        if len(fetched) == number:
            action()
        fetched.append(file.name)
        fetch(store, folder, file, vocabulary)

    monkeypatch.setattr(arrival_module, "fetch_file", replaced)


def test_a_run_that_is_stopped_while_it_waits_for_data_says_for_what_and_keeps_every_step(
    made, straight, tmp_path, monkeypatch, caplog
):
    recipe, _, address = made
    interruption, goes_on = Interruption(), threading.Event()
    run = RunDir(tmp_path / "run")
    config = streamed(recipe, address, data__prepared=str(tmp_path / "here"), training__steps=STEPS)

    def stop_who_waits():
        # Once it has said so: a request between its look for the data and that would be sooner.
        wait_until(lambda: f"training tokens from {address}" in caplog.text)
        interruption.stop("the test says so")
        goes_on.wait(30)  # as a server that does not answer

    with monkeypatch.context() as patched:
        after(2, stop_who_waits, patched)
        patched.setattr(console, "WAIT_LOGGED_AFTER_S", 0.0)
        with caplog.at_level(logging.INFO):
            ending = train(config, run, interruption=interruption)
        goes_on.set()
    done = [step.step for step in events(run, StepDone)]
    assert (ending.state, ending.reason) == ("preempted", "the test says so")
    assert ending.step == done[-1] == len(done)
    assert ending.step % 5, "a step after which a checkpoint is due anyway proves nothing"
    assert f"training tokens from {address}, for step {ending.step + 1}" in caplog.text
    assert train(config, run).state == "finished"
    assert [step.step for step in events(run, StepDone)] == list(range(1, STEPS + 1))
    assert_same_bits(straight, run)


def test_a_start_that_is_stopped_while_it_fetches_has_trained_nothing(made, tmp_path, monkeypatch):
    recipe, _, address = made
    interruption, goes_on, is_answered = Interruption(), threading.Event(), threading.Event()

    def hang(store, folder):
        interruption.stop("the test says so")
        goes_on.wait(30)
        is_answered.set()
        return fetch_beginning(store, folder)

    run = RunDir(tmp_path / "run")
    config = streamed(recipe, address, data__prepared=str(tmp_path / "here"), training__steps=2)
    with monkeypatch.context() as patched:
        patched.setattr(data_module, "fetch_beginning", hang)
        ending = train(config, run, interruption=interruption)
        is_over_before_the_answer = not is_answered.is_set()
        assert not (tmp_path / "here" / "data.json").exists()
        goes_on.set()
    assert is_over_before_the_answer
    assert (ending.state, ending.step, ending.reason) == ("preempted", 0, "the test says so")
    assert not run.events.exists()
    assert train(config, run).state == "finished"


def test_a_store_that_fails_while_a_step_waits_costs_no_step_but_a_new_start_says_why(
    made, straight, tmp_path, monkeypatch, starving
):
    recipe, _, address = made
    run = RunDir(tmp_path / "run")
    config = streamed(recipe, address, data__prepared=str(tmp_path / "here"), training__steps=STEPS)

    def fail():
        starving.wait(60)
        raise RemoteError(f"{address}: the connection broke", "broken")

    with monkeypatch.context() as patched:
        after(2, fail, patched)
        ending = train(config, run)
    done = [step.step for step in events(run, StepDone)]
    assert ending.state == "preempted"
    assert "the connection broke" in ending.reason
    assert ending.step == done[-1] == len(done)
    with monkeypatch.context() as patched:
        after(0, fail, patched)
        with pytest.raises(RemoteError, match="the connection broke"):
            train(config, run)
    assert train(config, run).state == "finished"
    assert_same_bits(straight, run)


def test_a_disk_that_is_full_when_a_wait_for_data_is_stopped_does_not_count_the_next_step(
    made, tmp_path, monkeypatch, starving
):
    recipe, _, address = made
    interruption, goes_on = Interruption(), threading.Event()
    run = RunDir(tmp_path / "run")
    config = streamed(recipe, address, data__prepared=str(tmp_path / "here"), training__steps=STEPS)

    def stop_who_waits():
        starving.wait(60)
        monkeypatch.setattr(background, "save_snapshot", full)
        interruption.stop("the test says so")
        goes_on.wait(30)

    def full(root, snapshot):
        raise StorageError(root, "saving a checkpoint", "no space left")

    after(2, stop_who_waits, monkeypatch)
    with pytest.raises(RunError, match="no space left"):
        train(config, run, interruption=interruption)
    goes_on.set()
    (ended,) = events(run, AttemptEnded)
    assert ended.state == "failed"
    assert ended.step == events(run, StepDone)[-1].step


def test_two_workers_that_wait_for_data_stop_together(made, tmp_path):
    """The server takes every request, and never answers from the third block on."""
    recipe, prepared, _ = made
    folder, run = tmp_path / "here", RunDir(tmp_path / "run")
    with s3_server() as port, proxy_to(port) as proxy, pytest.MonkeyPatch.context() as patched:
        for name, value in credentials(port).items():
            patched.setenv(name, value)
        make_bucket(port, "bucket")
        publish(prepared, Store(parse_address("s3://bucket/digits")))
        settings = {
            "data.prepared_from": "s3://bucket/digits",
            "data.prepared": folder,
            "data.prepared_max_bytes": two_blocks(prepared),
            "training.steps": 4000,
        }
        keys = [text for key, value in settings.items() for text in ("--set", f"{key}={value}")]
        process = start_dragoman(
            *("train", recipe, "--run", run.root, "--workers", 2, "--oversubscribe", *keys),
            env=environment(proxy.port),
        )
        try:
            wait_until(lambda: len([*folder.rglob("train-*.tokens.npy")]) == 2)
            proxy.delay_s = 600.0
            wait_until(lambda: any("has waited" in log.read_text() for log in run.logs.glob("*")))
            process.send_signal(signal.SIGTERM)
            _, sentences = process.communicate(timeout=60)
        finally:
            process.kill()
    done = [*steps(run.root)]
    assert process.returncode == 75, sentences
    assert done == list(range(1, len(done) + 1))
    assert (run.checkpoints / "latest").resolve().name == f"step-{done[-1]:08}"


def test_a_server_that_is_away_for_longer_than_a_start_would_wait_costs_nothing(
    made, straight, tmp_path, monkeypatch
):
    recipe, prepared, _ = made
    for name in [name for name in os.environ if name.startswith(PREFIXES)]:
        monkeypatch.delenv(name)
    with s3_server() as port, proxy_to(port) as proxy:
        for name, value in credentials(proxy.port).items():
            monkeypatch.setenv(name, value)
        make_bucket(port, "bucket")
        publish(prepared, Store(parse_address("s3://bucket/digits")))
        settings = {"data__prepared": str(tmp_path / "here"), "training__steps": STEPS}
        run, config = RunDir(tmp_path / "run"), streamed(recipe, "s3://bucket/digits", **settings)

        def go_away():
            proxy.is_closed, proxy.cut_after = True, 0
            threading.Thread(target=come_back).start()

        def come_back():
            wait_until(lambda: proxy.refusals > Patience().retries + 1)
            proxy.heal()

        after(2, go_away, monkeypatch)
        assert train(config, run).state == "finished"
    assert proxy.refusals > Patience().retries + 1
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
