import threading
from itertools import count

import numpy as np
import pytest

from dragoman.errors import RemoteError, UserError
from dragoman.shards import arrival as arrival_module
from dragoman.shards.arrival import Arrival
from dragoman.shards.files import write_shard
from dragoman.storage import Store, parse_address

BLOCKS = 6
STEPS = 2
"""Of a block."""


@pytest.fixture
def blocks(tmp_path):
    """Blocks of two files each, at an address."""
    files = []
    for number in range(2 * BLOCKS):
        tokens = np.arange(40, dtype=np.uint16)
        bounds = np.arange(0, 41, dtype=np.int64)
        files.append(
            write_shard(tmp_path / "there" / "shards", f"train-{number}", tokens, bounds)[0]
        )
    return [files[at : at + 2] for at in range(0, len(files), 2)]


@pytest.fixture
def store(tmp_path):
    return Store(parse_address(f"file://{tmp_path}/there"))


def in_order(step):
    """Every epoch from the first block to the last."""
    for number in count((step - 1) // STEPS):
        yield number % BLOCKS, number * STEPS + 1


def here(folder):
    return {path.name for path in folder.rglob("*.npy") if not path.name.startswith(".")}


def bytes_of(files):
    return sum(file.bytes for file in files)


def wait_for(arrival, block):
    pause = threading.Event()
    while not arrival.is_here(block):
        pause.wait(0.001)


@pytest.mark.parametrize("limit", [2, 3, BLOCKS])
def test_blocks_come_in_order_and_never_take_more_room_than_they_may(
    blocks, store, tmp_path, monkeypatch, limit
):
    most, folder, fetched = limit * bytes_of(blocks[0]), tmp_path / "here", []
    fetch = arrival_module.fetch_file

    def measured(store, folder, file, vocabulary):
        fetched.append(file.name)
        there = sum(path.stat().st_size for path in folder.rglob("*.npy"))
        assert there + file.bytes <= most
        fetch(store, folder, file, vocabulary)

    monkeypatch.setattr(arrival_module, "fetch_file", measured)
    arrival = Arrival(folder, blocks, 60, store, most)
    arrival.follow(in_order, last_step=None)
    arrival.begin(1)
    try:
        for step in range(1, 2 * BLOCKS * STEPS + 1):
            block = (step - 1) // STEPS % BLOCKS
            wait_for(arrival, block)
            arrival.passed(step)
            if step % STEPS == 0:
                wait_for(arrival, (block + 1) % BLOCKS)  # the next comes before this one is left
                assert arrival.is_here(block)
    finally:
        arrival.close()
    names = [file.name for block in blocks for file in block]
    assert fetched[: len(names)] == names
    if limit == BLOCKS:
        assert fetched == names  # nothing twice where there is room for all


def test_nothing_is_fetched_beyond_the_last_step(blocks, store, tmp_path):
    arrival = Arrival(tmp_path / "here", blocks, 60, store)
    arrival.follow(in_order, last_step=2 * STEPS)
    arrival.begin(1)
    wait_for(arrival, 1)
    arrival.close()
    assert len(here(tmp_path / "here")) == 4


def test_an_earlier_step_brings_its_block_back(blocks, store, tmp_path):
    arrival = Arrival(tmp_path / "here", blocks, 60, store, 2 * bytes_of(blocks[0]))
    arrival.follow(in_order, last_step=None)
    arrival.begin(3 * STEPS + 1)
    wait_for(arrival, 4)
    assert not arrival.is_here(0)
    arrival.begin(1)
    wait_for(arrival, 0)
    wait_for(arrival, 1)
    arrival.close()
    assert here(tmp_path / "here") == {
        file.name.split("/")[1] for block in blocks[:2] for file in block
    }


def test_a_lower_limit_than_before_is_kept_at_once(blocks, store, tmp_path):
    folder, least = tmp_path / "here", bytes_of(blocks[0]) + bytes_of(blocks[1])
    arrival = Arrival(folder, blocks, 60, store)
    for block in range(BLOCKS):
        arrival.fetch_now(block)
    lower = Arrival(folder, blocks, 60, store, least)
    lower.follow(in_order, last_step=STEPS)
    lower.begin(1)
    pause = threading.Event()
    while len(here(folder)) > 4:
        pause.wait(0.001)
    assert lower.is_here(0)
    lower.close()


def test_a_block_can_be_had_before_all_others(blocks, store, tmp_path):
    arrival = Arrival(tmp_path / "here", blocks, 60, store, 2 * bytes_of(blocks[0]))
    for block in (0, 3, 5):
        arrival.fetch_now(block)
        assert arrival.is_here(block)
    arrival.close()
    assert len(here(tmp_path / "here")) == 4


def test_a_rank_that_does_not_fetch_sees_what_another_has_fetched(blocks, store, tmp_path):
    looks = Arrival(tmp_path / "here", blocks, 60, None)
    looks.follow(in_order, last_step=None)
    looks.begin(1)
    looks.fetch_now(0)
    assert not looks.is_here(0)
    fetches = Arrival(tmp_path / "here", blocks, 60, store)
    fetches.fetch_now(0)
    assert looks.is_here(0)
    for each in (looks, fetches):
        each.close()


@pytest.mark.parametrize("error", [RemoteError("the store is gone", "broken"), OSError("no disk")])
def test_a_failure_is_told_at_once_and_raised_where_the_file_is_needed(
    blocks, store, tmp_path, monkeypatch, error
):
    fetch = arrival_module.fetch_file

    def break_off(store, folder, file, vocabulary):
        if file in blocks[1]:
            raise error
        fetch(store, folder, file, vocabulary)

    monkeypatch.setattr(arrival_module, "fetch_file", break_off)
    arrival = Arrival(tmp_path / "here", blocks, 60, store)
    arrival.follow(in_order, last_step=None)
    told, has_failed = [], threading.Event()
    arrival.on_failure = lambda sentence: (told.append(sentence), has_failed.set())
    arrival.begin(1)
    assert has_failed.wait(30)
    assert told == [str(error)]
    assert arrival.is_here(0)
    with pytest.raises(type(error), match=str(error)):
        arrival.is_here(1)
    arrival.close()


def test_a_limit_below_two_blocks_is_refused_with_one_that_works(blocks, store, tmp_path):
    least = bytes_of(blocks[0]) + bytes_of(blocks[1])
    with pytest.raises(UserError, match=rf"prepared_max_bytes = {least - 1} .* {least} or more"):
        Arrival(tmp_path, blocks, 60, store, least - 1)
    Arrival(tmp_path, blocks, 60, store, least)
    with pytest.raises(UserError, match=r"one block; .*data\.block_pairs"):
        Arrival(tmp_path, blocks[:1], 60, store, 5)
