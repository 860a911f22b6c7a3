import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from file_server import CONTENT, endless

from dragoman.corpus.download import disk
from dragoman.errors import StorageError


def test_two_who_fetch_the_same_file_download_it_once(server, get, monkeypatch):
    other_waits = threading.Event()
    monkeypatch.setattr(disk.logger, "info", lambda _: other_waits.set())

    def once_the_other_waits(handler):
        assert other_waits.wait(30)
        handler.well()

    server.answers = [once_the_other_waits]
    with ThreadPoolExecutor(2) as pool:
        first, second = (pool.submit(get) for _ in range(2))
        assert first.result().read_bytes() == second.result().read_bytes() == CONTENT
    assert len(server.requests) == 1


def test_a_file_that_does_not_fit_on_the_disk_is_refused_before_it_is_fetched(
    server, get, tmp_path
):
    server.answers = [lambda handler: handler.send(200, b"x", Content_Length=10**17)]
    with pytest.raises(StorageError, match=r"corpus\.bin: 100,000,000,000 MB do not fit into"):
        get()


def test_a_download_stops_before_the_disk_is_full(server, get, monkeypatch):
    free = iter([10_000_000, 5_000_000, 200_000])
    monkeypatch.setattr(disk, "KEEP_FREE_BYTES", 150_000)
    monkeypatch.setattr(
        disk.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(0, 0, next(free, 1000))
    )
    server.answers = [endless]
    with pytest.raises(StorageError, match=r"corpus\.bin: .* do not fit into"):
        get()
