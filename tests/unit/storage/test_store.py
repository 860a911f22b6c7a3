import sys
import urllib.request

import pytest
from object_server import proxy_to, refusing_server

from dragoman.errors import RemoteError, UserError
from dragoman.storage import Pace, Store, parse_address
from dragoman.storage.store import PART_BYTES

LARGE = bytes(range(256)) * 4 * ((2 * PART_BYTES + 100_000) // 1024)


def test_what_is_uploaded_comes_back(store, tmp_path):
    assert store.upload("folder/a", b"content") == 7
    assert store.read("folder/a") == b"content"
    assert store.read_range("folder/a", 3, 2) == b"te"
    assert store.size("folder/a") == 7
    store.upload("folder/a", b"other")
    assert store.read("folder/a") == b"other"


def test_a_large_file_travels_in_parts_both_ways(store, tmp_path):
    path = tmp_path / "large"
    path.write_bytes(LARGE)
    with path.open("rb") as file:
        assert store.upload("large", file) == len(LARGE)
    arrived = []
    store.download("large", tmp_path / "back" / "large", arrived.append)
    assert (tmp_path / "back" / "large").read_bytes() == LARGE
    assert sum(arrived) == len(LARGE)
    assert max(arrived) == PART_BYTES
    assert [path.name for path in (tmp_path / "back").iterdir()] == ["large"]


def test_a_limited_upload_takes_its_turn_for_every_part(store, tmp_path):
    path = tmp_path / "large"
    path.write_bytes(LARGE)
    waits = []
    pace = Pace(1e9, clock=lambda: 0.0, pause=waits.append)
    with path.open("rb") as file:
        assert store.upload("large", file, pace) == len(LARGE)
    store.upload("small", b"x" * 1000, pace)
    assert len(waits) == 3  # after the first of three parts


def test_names_are_listed_and_removed(store):
    for name in ("b/2", "a", "b/1"):
        store.upload(name, name.encode() * 2)
    assert store.list() == [("a", 2), ("b/1", 6), ("b/2", 6)]
    assert [entry.name for entry in store.list("b")] == ["b/1", "b/2"]
    store.delete(["b/1", "not there"])
    assert [entry.name for entry in store.list()] == ["a", "b/2"]


def test_an_object_that_marks_the_folder_itself_is_not_listed(server_port, store):
    url = f"http://127.0.0.1:{server_port}/{store.address.host}/{store.address.path}/"
    with urllib.request.urlopen(urllib.request.Request(url, data=b"", method="PUT"), timeout=30):
        pass
    store.upload("a", b"x")
    assert store.list() == [("a", 1)]


def test_what_is_not_there_is_missing(store, tmp_path):
    assert store.size("nothing") is None
    assert store.list() == []
    for ask in (store.read, lambda name: store.download(name, tmp_path / "x")):
        with pytest.raises(RemoteError) as caught:
            ask("nothing")
        assert caught.value.kind == "missing"
    assert list(tmp_path.iterdir()) == []


def test_ranges_beyond_the_end_are_refused(store):
    store.upload("a", b"hello")
    with pytest.raises(RemoteError, match="2 bytes have arrived instead of 50"):
        store.read_range("a", 3, 50)
    with pytest.raises(RemoteError):
        store.read_range("a", 10, 1)
    assert store.read_range("a", 10, 0) == b""


def test_more_than_may_be_read_is_refused(store):
    store.upload("a", b"hello")
    with pytest.raises(RemoteError, match="5 bytes"):
        store.read("a", most_bytes=4)


def test_a_bucket_that_is_not_there_is_named(server_port, reach, hasty):
    reach(server_port)
    store = Store(parse_address("s3://no-such-bucket/x"), hasty)
    for ask in (store.list, lambda: store.upload("a", b"x"), lambda: store.read("a")):
        with pytest.raises(RemoteError, match="'no-such-bucket'") as caught:
            ask()
        assert caught.value.kind == "no bucket"


def test_a_folder_is_a_store_too(tmp_path):
    store = Store(parse_address(f"file://{tmp_path}/store"))
    assert store.list() == []
    assert store.size("a/b") is None
    assert not (tmp_path / "store").exists()  # a look at a wrong address makes nothing
    store.upload("a/b", b"content")
    assert store.read("a/b") == b"content"
    assert store.list() == [("a/b", 7)]
    store.download("a/b", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == b"content"
    store.delete(["a/b", "a/b"])
    assert store.list() == []
    assert store.size("a/b") is None


def test_web_servers_can_be_read_and_nothing_else(server_port, store, hasty):
    with refusing_server(200, "content") as server:
        web = Store(parse_address(f"http://127.0.0.1:{server.port}/folder"), hasty)
        assert web.read("a") == server.body
        assert server.asked == ["/folder/a"]
        with pytest.raises(RemoteError, match="range requests"):  # it always sends the whole
            web.read_range("a", 0, 5)
    with pytest.raises(UserError, match="only be read"):
        web.upload("a", b"x")
    with pytest.raises(UserError, match="listed"):
        web.list()
    hidden = Store(parse_address(f"http://127.0.0.1:{server_port}/bucket"), hasty)
    store.upload("a", b"content")
    with pytest.raises(RemoteError, match="the server refuses it"):
        hidden.read(f"{store.address.path}/a")


def test_a_truncated_answer_leaves_no_file(server_port, store, reach, hasty, tmp_path):
    store.upload("a", b"x" * 300_000)
    with proxy_to(server_port) as proxy:
        reach(proxy.port)
        through = Store(store.address, hasty)
        proxy.truncate_after = 100_000
        with pytest.raises(RemoteError):
            through.download("a", tmp_path / "a")
        assert list(tmp_path.iterdir()) == []
        with pytest.raises(RemoteError):
            through.read("a")
        proxy.heal()
        through.download("a", tmp_path / "a")
    assert (tmp_path / "a").stat().st_size == 300_000


def test_an_upload_that_is_cut_is_not_there(server_port, store, reach, hasty):
    with proxy_to(server_port) as proxy:
        reach(proxy.port)
        through = Store(store.address, hasty)
        proxy.cut_after = 100_000
        with pytest.raises(RemoteError) as caught:
            through.upload("a", b"x" * 300_000)
        assert caught.value.kind == "broken"
        assert proxy.cuts >= 2  # it was tried again
        proxy.is_closed = True
        with pytest.raises(RemoteError):
            through.upload("b", b"x")
        proxy.heal()
        through.upload("c", b"x" * 300_000)
    assert [entry.name for entry in store.list()] == ["c"]


def test_nobody_is_asked_for_the_credentials_of_the_machine(bare):
    with pytest.raises(UserError, match="AWS_ACCESS_KEY_ID"):
        Store(parse_address("s3://bucket/x"))
    bare.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/no/such/file")
    with pytest.raises(RemoteError, match="GOOGLE_"):
        Store(parse_address("gs://bucket/x"))


def test_without_the_package_there_is_a_command_that_installs_it(bare):
    bare.setitem(sys.modules, "obstore", None)
    with pytest.raises(UserError, match=r"\[storage\]"):
        Store(parse_address("s3://bucket/x"))


def test_a_closed_store_begins_nothing_and_drops_what_is_on_its_way(store, tmp_path, monkeypatch):
    store.upload("large", bytes(PART_BYTES + 1))
    part = store._part
    monkeypatch.setattr(store, "_part", lambda *each: (part(*each), store.close())[0])
    with pytest.raises(RemoteError, match="not used any more"):
        store.download("large", tmp_path / "large")
    with pytest.raises(RemoteError, match="not used any more"):
        store.read("large")
    assert not any(tmp_path.iterdir())
