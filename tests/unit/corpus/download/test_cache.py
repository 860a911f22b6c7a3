import json
import os

import pytest
from file_server import CONTENT, SHA256, status

from dragoman.corpus.download import (
    cached_path,
    fetch,
)
from dragoman.errors import UserError
from dragoman.storage import Store, parse_address


def record_of(path):
    return json.loads(path.with_name(path.name + ".json").read_text())


def test_a_file_arrives_whole_and_says_where_it_came_from(server, get, tmp_path):
    path = get(sha256=SHA256)
    assert path == tmp_path / "cache" / f"127.0.0.1:{server.server_port}" / "data" / "corpus.bin"
    assert path.read_bytes() == CONTENT
    record = record_of(path)
    assert record.pop("fetched_at").endswith("+00:00")
    assert record == {
        "url": server.url,
        "from": server.url,
        "bytes": len(CONTENT),
        "sha256": SHA256,
        "etag": '"one"',
    }
    assert not list(path.parent.glob("*.part*"))


def test_a_finished_file_needs_no_network(server, get):
    first = get()
    assert get(sha256=SHA256) == first
    assert len(server.requests) == 1


def test_a_missing_file_is_said_at_once_with_where_to_put_it_by_hand(server, get, tmp_path, pauses):
    server.answers = [status(404)]
    with pytest.raises(UserError) as caught:
        get()
    sentence = str(caught.value)
    assert "404 Not Found" in sentence
    assert str(cached_path(server.url, tmp_path / "cache")) in sentence
    assert "data.mirror" in sentence
    assert pauses == []


def test_a_wrong_hash_is_refused_and_not_kept(server, get, tmp_path):
    with pytest.raises(UserError, match=f"sha256 is {SHA256} and should be {'0' * 64}"):
        get(sha256="0" * 64)
    with pytest.raises(UserError, match="md5 is"):
        get(md5="0" * 32)
    path = cached_path(server.url, tmp_path / "cache")
    assert [file.name for file in path.parent.iterdir()] == ["corpus.bin.lock"]


def test_a_file_brought_by_hand_is_taken(get, tmp_path):
    url = "https://corpus.invalid/a/b.tgz"
    path = cached_path(url, tmp_path / "cache")
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    assert get(url, sha256=SHA256) == path


def test_a_file_brought_by_hand_that_is_another_is_refused_and_left(get, tmp_path):
    url = "https://corpus.invalid/a/b.tgz"
    path = cached_path(url, tmp_path / "cache")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"something else")
    with pytest.raises(UserError, match="should be"):
        get(url, sha256=SHA256)
    assert path.read_bytes() == b"something else"


def test_a_finished_file_that_was_cut_since_is_refused(get):
    path = get()
    path.write_bytes(CONTENT[:100])
    with pytest.raises(UserError, match=r"has 100 bytes, but 1,048,576 were fetched"):
        get()


def test_a_mirror_stands_in_for_every_server(server, get, tmp_path):
    url = "https://corpus.invalid/a/b.tgz"
    path = get(url, mirror=f"http://127.0.0.1:{server.server_port}/copies/")
    assert server.requests[0]["path"] == "/copies/corpus.invalid/a/b.tgz"
    assert path == tmp_path / "cache" / "corpus.invalid" / "a" / "b.tgz"
    assert record_of(path)["url"] == url


def test_a_cache_is_a_mirror_of_the_next(server, get, tmp_path):
    url = f"{server.url}?version=1/2"
    first = get(url)
    second = fetch(url, tmp_path / "other", mirror=(tmp_path / "cache").as_uri())
    assert second.read_bytes() == CONTENT
    assert second != first
    assert len(server.requests) == 1


def test_a_file_that_a_folder_does_not_mirror_is_named(get, tmp_path):
    with pytest.raises(UserError, match=r"No such file.*data\.mirror"):
        get("https://corpus.invalid/a/b.tgz", mirror=tmp_path.as_uri())


def test_a_mirror_that_is_no_address_is_refused(get):
    with pytest.raises(UserError, match=r"data\.mirror = '/mnt/copies'"):
        get(mirror="/mnt/copies")


@pytest.mark.parametrize(
    "url", ["http://host/a/../b", "http://../b", "http://host/", "file:///etc/passwd", "ftp://h/x"]
)
def test_an_address_that_leads_out_of_the_cache_is_refused(tmp_path, url):
    with pytest.raises(UserError):
        cached_path(url, tmp_path)


@pytest.mark.parametrize("url", ["http://[", "http://[::1/a", "http://h:99999/a", "http://h:x/a"])
def test_an_address_that_cannot_be_taken_apart_is_named(tmp_path, url):
    with pytest.raises(UserError) as caught:
        cached_path(url, tmp_path)
    assert str(caught.value).startswith(f"{url}: not an address (")


def test_a_mirror_or_a_server_that_leads_to_no_address_is_named(server, get):
    with pytest.raises(UserError, match=r"http://\[/127.*data\.mirror"):
        get(mirror="http://[")
    server.answers = [lambda handler: handler.send(302, b"", Location="http://[/x")]
    with pytest.raises(UserError, match=r"corpus\.bin: .*redirects to, is not an address"):
        get()


def test_addresses_that_differ_have_different_places(tmp_path):
    urls = [
        "http://h/a?b=1/2",
        "http://h/a?b=1|2",
        "http://h/a_b=1_2",
        "http://h:1/a",
        "http://h/a",
    ]
    places = {cached_path(url, tmp_path) for url in urls}
    assert len(places) == len(urls)
    assert all(place.is_relative_to(tmp_path) for place in places)


def test_a_pipe_in_a_mirror_or_in_the_cache_is_not_waited_for(get, tmp_path):
    url = "https://corpus.invalid/a/b.tgz"
    for folder in (tmp_path / "mirror", tmp_path / "cache"):
        path = cached_path(url, folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(path)
        with pytest.raises(UserError, match=r"b\.tgz: is a named pipe"):
            get(url, mirror=(tmp_path / "mirror").as_uri())


def test_a_file_of_an_object_store_is_fetched_once(tmp_path, monkeypatch):
    from dragoman.corpus.download import cache

    (tmp_path / "bucket" / "corpus").mkdir(parents=True)
    (tmp_path / "bucket" / "corpus" / "train.en").write_bytes(CONTENT)
    opened = []

    def store_of(address):
        opened.append(str(address))
        return Store(parse_address(f"file://{tmp_path}/{address.host}/{address.path}"))

    monkeypatch.setattr(cache, "Store", store_of)
    for _ in range(2):
        path = fetch("s3://bucket/corpus/train.en", tmp_path / "cache", sha256=SHA256)
    assert opened == ["s3://bucket/corpus"]
    assert path == tmp_path / "cache" / "s3:bucket" / "corpus" / "train.en"
    assert path.read_bytes() == CONTENT
    assert record_of(path)["from"] == "s3://bucket/corpus/train.en"
    with pytest.raises(UserError, match="no such object"):
        fetch("s3://bucket/corpus/train.de", tmp_path / "cache")
    with pytest.raises(UserError, match="sha256 is"):
        fetch("s3://bucket/corpus/train.en", tmp_path / "other", sha256="0" * 64)


@pytest.mark.parametrize("url", ["s3://bucket", "s3://key:geheim@bucket/x", "gs:///x"])
def test_what_names_no_object_is_refused(tmp_path, url):
    with pytest.raises(UserError) as caught:
        fetch(url, tmp_path / "cache")
    assert "geheim" not in str(caught.value)
