import json
import resource

import pytest
from file_server import CONTENT, SHA256, Handler, endless, status

from dragoman.corpus.download import (
    cached_path,
    resumable,
)
from dragoman.corpus.download.resumable import PAUSES_S
from dragoman.errors import StorageError, UserError


def test_a_broken_connection_is_taken_up_where_it_broke(server, get, pauses):
    server.answers = [Handler.broken]
    assert get().read_bytes() == CONTENT
    quarter = len(CONTENT) // 4
    assert server.requests[1]["Range"] == f"bytes={quarter}-"
    assert server.requests[1]["If-Range"] == '"one"'
    assert pauses == [PAUSES_S[0]]


def test_a_line_that_keeps_breaking_brings_the_file_as_long_as_it_gets_further(server, get, pauses):
    server.answers = [lambda handler: handler.well(cut=40_000)] * 20
    assert get().read_bytes() == CONTENT
    assert pauses == [PAUSES_S[0]] * 20


def test_a_download_goes_on_in_the_next_process(server, get):
    server.answers = [Handler.broken, *[status(503)] * (len(PAUSES_S) + 1)]
    with pytest.raises(UserError, match="503"):
        get()
    server.requests.clear()
    assert get().read_bytes() == CONTENT
    assert server.requests[0]["Range"] == f"bytes={len(CONTENT) // 4}-"


def test_a_part_that_is_whole_already_is_not_asked_for_again(server, get, tmp_path):
    path = cached_path(server.url, tmp_path / "cache")
    path.parent.mkdir(parents=True)
    path.with_name("corpus.bin.part").write_bytes(CONTENT)
    path.with_name("corpus.bin.part.json").write_text(
        json.dumps({"address": server.url, "validator": '"one"', "bytes": len(CONTENT)})
    )
    assert get(sha256=SHA256).read_bytes() == CONTENT
    assert server.requests == []


def test_a_server_that_ignores_ranges_makes_it_start_over(server, get):
    server.answers = [Handler.broken, Handler.without_ranges]
    assert get().read_bytes() == CONTENT
    assert len(server.requests) == 2


def test_without_an_etag_or_a_date_nothing_is_continued(server, get):
    server.answers = [Handler.broken_without_etag]
    assert get().read_bytes() == CONTENT
    assert "Range" not in server.requests[1]


def test_a_weak_etag_does_not_vouch_for_bytes_but_a_date_does(server, get):
    date = "Wed, 21 Oct 2015 07:28:00 GMT"
    server.answers = [
        lambda handler: handler.send(200, CONTENT, 1000, ETag='W/"one"', Last_Modified=date)
    ]
    assert get().read_bytes() == CONTENT
    assert server.requests[1]["If-Range"] == date


def test_a_file_that_changed_between_two_tries_is_fetched_anew(server, get):
    def breaks_and_changes(handler):
        handler.broken()
        server.content, server.etag = b"another file" * 100_000, '"two"'

    server.answers = [breaks_and_changes]
    assert get().read_bytes() == b"another file" * 100_000


@pytest.mark.parametrize("span", ["bytes 5-9/10", "nonsense"])
def test_a_server_that_continues_with_something_else_makes_it_start_over(server, get, span):
    server.answers = [
        Handler.broken,
        lambda handler: handler.send(206, b"other", Content_Range=span),
    ]
    assert get().read_bytes() == CONTENT
    assert "Range" not in server.requests[2]


def test_a_server_that_overlooks_the_change_of_its_file_makes_it_start_over(server, get):
    begin = len(CONTENT) // 4
    span = f"bytes {begin}-{len(CONTENT) - 1}/{len(CONTENT)}"
    server.answers = [
        Handler.broken,
        lambda handler: handler.send(206, b"x" * 10, ETag='"two"', Content_Range=span),
    ]
    assert get().read_bytes() == CONTENT


def test_a_file_that_became_shorter_than_what_arrived_is_fetched_anew(server, get):
    server.answers = [Handler.broken, status(416)]
    assert get().read_bytes() == CONTENT
    assert "Range" not in server.requests[2]


def test_a_busy_server_is_asked_again_after_growing_pauses(server, get, pauses):
    server.answers = [status(503), status(429), status(500)]
    assert get().read_bytes() == CONTENT
    assert pauses == list(PAUSES_S[:3])


def test_a_body_shorter_than_announced_is_given_up_with_both_lengths(server, get, tmp_path):
    def too_short(handler):
        handler.send(200, b"short", Content_Length=10, ETag=None)

    server.answers = [too_short] * (len(PAUSES_S) + 1)
    with pytest.raises(UserError, match="ended after 5 of 10 bytes"):
        get()
    assert not cached_path(server.url, tmp_path / "cache").exists()


def test_a_full_disk_is_said_and_what_arrived_is_used_when_there_is_space(server, get):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
    try:
        with pytest.raises(StorageError, match=r"corpus\.bin: .* free some space"):
            get()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert get(sha256=SHA256).read_bytes() == CONTENT
    assert server.requests[1]["Range"] == "bytes=300000-"


def test_a_part_from_one_server_is_not_continued_from_another(server, get):
    url = "https://corpus.invalid/a/b.tgz"
    here = f"http://127.0.0.1:{server.server_port}"
    server.answers = [Handler.broken, *[status(503)] * (len(PAUSES_S) + 1)]
    with pytest.raises(UserError):
        get(url, mirror=f"{here}/one")
    server.requests.clear()
    assert get(url, mirror=f"{here}/two").read_bytes() == CONTENT
    assert "Range" not in server.requests[0]


def test_a_server_that_never_stops_sending_is_given_up_and_nothing_is_kept(
    server, get, tmp_path, monkeypatch
):
    monkeypatch.setattr(resumable, "LARGEST_UNANNOUNCED_BYTES", 3_000_000)
    server.answers = [endless]
    with pytest.raises(UserError, match=r"announces no length and has sent more than 0\.003 GB"):
        get()
    assert server.given_up.wait(30)
    path = cached_path(server.url, tmp_path / "cache")
    assert [file.name for file in path.parent.iterdir()] == ["corpus.bin.lock"]


def test_a_server_that_sends_more_than_it_announced_is_given_up(server, get, tmp_path):
    def chunked(handler):
        endless(
            handler,
            b"C350\r\n" + b"x" * 50_000 + b"\r\n",
            Transfer_Encoding="chunked",
            Content_length=1_000_000,
        )

    Handler.protocol_version = "HTTP/1.1"
    server.answers = [chunked]
    try:
        with pytest.raises(UserError, match="sends more than the 1,000,000 bytes it announced"):
            get()
    finally:
        del Handler.protocol_version
    assert not cached_path(server.url, tmp_path / "cache").exists()


@pytest.mark.parametrize("length", ["²", "-1", "9" * 5000, "many"])
def test_a_length_that_is_no_number_is_no_length(server, get, length):
    server.answers = [lambda handler: handler.send(200, CONTENT, Content_Length=length)]
    assert get().read_bytes() == CONTENT
