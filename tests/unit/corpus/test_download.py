import gzip
import hashlib
import io
import json
import lzma
import os
import random
import resource
import shutil
import ssl
import subprocess
import tarfile
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from dragoman.corpus import download
from dragoman.corpus.download import (
    PAUSES_S,
    cached_path,
    extract_all,
    extract_member,
    extract_members,
    fetch,
)
from dragoman.errors import StorageError, UserError

CONTENT = bytes(range(256)) * 4096  # 1 MiB: more than a socket takes at once
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Serves one file with ranges and an ETag; each request may be given another answer."""

    def do_GET(self):
        server = self.server
        server.requests.append(dict(self.headers) | {"path": self.path})
        answer = server.answers.pop(0) if server.answers else Handler.well
        answer(self)

    def log_message(self, *_):
        pass

    def send(self, status, body, cut=None, **headers):
        self.send_response(status)
        headers = {"Content_Length": len(body), "ETag": self.server.etag} | headers
        for name, value in headers.items():
            if value is not None:
                self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body[:cut])

    def well(self, cut=None):
        content = self.server.content
        wanted = self.headers.get("Range")
        if wanted and self.headers.get("If-Range") == self.server.etag:
            begin = int(wanted.removeprefix("bytes=").removesuffix("-"))
            span = f"bytes {begin}-{len(content) - 1}/{len(content)}"
            self.send(206, content[begin:], cut, Content_Range=span)
        else:
            self.send(200, content, cut)

    def broken(self):
        self.well(cut=len(self.server.content) // 4)

    def without_ranges(self):
        self.send(200, self.server.content)

    def broken_without_etag(self):
        self.send(200, self.server.content, cut=1000, ETag=None)


def status(code):
    return lambda handler: handler.send(code, b"sorry")


@pytest.fixture
def server(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.content, server.etag = CONTENT, '"one"'
        server.requests, server.answers = [], []
        server.over, server.given_up = threading.Event(), threading.Event()
        server.url = f"http://127.0.0.1:{server.server_port}/data/corpus.bin"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.over.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def pauses():
    return []


@pytest.fixture
def get(server, tmp_path, pauses):
    def get(url=server.url, **options):
        return fetch(url, tmp_path / "cache", pause=pauses.append, **options)

    return get


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


def test_a_missing_file_is_said_at_once_with_where_to_put_it_by_hand(server, get, tmp_path, pauses):
    server.answers = [status(404)]
    with pytest.raises(UserError) as caught:
        get()
    sentence = str(caught.value)
    assert "404 Not Found" in sentence
    assert str(cached_path(server.url, tmp_path / "cache")) in sentence
    assert "data.mirror" in sentence
    assert pauses == []


def test_a_refused_connection_is_said_at_once(server, get, pauses):
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as closed:
        port = closed.server_port
    with pytest.raises(UserError, match=r"refuses the connection.*by hand.*data\.mirror"):
        get(f"http://127.0.0.1:{port}/x")
    assert pauses == []


def test_a_name_that_cannot_be_resolved_is_said_at_once(get, pauses):
    with pytest.raises(UserError, match=r"no server of that name.*by hand.*data\.mirror"):
        get("http://corpus.invalid/x")
    assert pauses == []


def test_a_wrong_hash_is_refused_and_not_kept(server, get, tmp_path):
    with pytest.raises(UserError, match=f"sha256 is {SHA256} and should be {'0' * 64}"):
        get(sha256="0" * 64)
    with pytest.raises(UserError, match="md5 is"):
        get(md5="0" * 32)
    path = cached_path(server.url, tmp_path / "cache")
    assert [file.name for file in path.parent.iterdir()] == ["corpus.bin.lock"]


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


def test_two_who_fetch_the_same_file_download_it_once(server, get, monkeypatch):
    other_waits = threading.Event()
    monkeypatch.setattr(download, "say", lambda _: other_waits.set())

    def once_the_other_waits(handler):
        assert other_waits.wait(30)
        handler.well()

    server.answers = [once_the_other_waits]
    with ThreadPoolExecutor(2) as pool:
        first, second = (pool.submit(get) for _ in range(2))
        assert first.result().read_bytes() == second.result().read_bytes() == CONTENT
    assert len(server.requests) == 1


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


def test_a_part_from_one_server_is_not_continued_from_another(server, get):
    url = "https://corpus.invalid/a/b.tgz"
    here = f"http://127.0.0.1:{server.server_port}"
    server.answers = [Handler.broken, *[status(503)] * (len(PAUSES_S) + 1)]
    with pytest.raises(UserError):
        get(url, mirror=f"{here}/one")
    server.requests.clear()
    assert get(url, mirror=f"{here}/two").read_bytes() == CONTENT
    assert "Range" not in server.requests[0]


def test_the_proxy_of_the_environment_is_used(server, get, monkeypatch):
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.server_port}")
    assert get("http://corpus.invalid/a/b.tgz").read_bytes() == CONTENT
    assert server.requests[0]["path"] == "http://corpus.invalid/a/b.tgz"


CERTIFICATE = """
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=127.0.0.1
-addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out certificate.pem
"""


@pytest.mark.skipif(not shutil.which("openssl"), reason="makes its certificate with openssl")
def test_a_secure_address_is_not_followed_to_an_insecure_one(server, get, tmp_path, monkeypatch):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        CERTIFICATE.split(),
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    url = server.url.replace("http:", "https:")
    with pytest.raises(UserError, match="certificate does not hold"):
        get(url)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    insecure = "http://corpus.invalid/x"
    server.answers = [lambda handler: handler.send(302, b"", Location=insecure)]
    with pytest.raises(UserError, match=f"sends us on to {insecure}"):
        get(url)
    server.answers = [lambda handler: handler.send(302, b"", Location="/elsewhere")]
    assert get(url).read_bytes() == CONTENT


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
    with pytest.raises(UserError, match=r"corpus\.bin: .*sends us on to, is not an address"):
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


def endless(handler, chunk=b"x" * 50_000, pause_s=0.0, **headers):
    """Sends until the other side has had enough."""
    handler.send(200, b"", Content_Length=None, **headers)
    try:
        while not handler.server.over.wait(pause_s):
            handler.wfile.write(chunk)
    except OSError:
        pass
    handler.server.given_up.set()


def test_a_server_that_never_stops_sending_is_given_up_and_nothing_is_kept(
    server, get, tmp_path, monkeypatch
):
    monkeypatch.setattr(download, "LARGEST_UNANNOUNCED_BYTES", 3_000_000)
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


def test_a_server_that_dribbles_is_given_up_after_some_tries(server, get, pauses, monkeypatch):
    monkeypatch.setattr(download, "PACE_WINDOW_S", 0.05)
    monkeypatch.setattr(download, "SLOWEST_BYTES_PER_S", 100_000)
    server.answers = [lambda handler: endless(handler, b"x", 0.001)] * (len(PAUSES_S) + 1)
    with pytest.raises(UserError, match="sends less than 100000 bytes a second"):
        get()
    assert pauses == list(PAUSES_S)


@pytest.mark.parametrize(
    "answer",
    [b"HTTP/1.1 100 -\r\n\r\n" * 1000, b"\x1b[2J" * 10_000, b"X: " + b"x" * 50_000 + b"\r\n"],
)
def test_an_answer_that_never_comes_to_the_file_is_given_up_in_a_short_sentence(
    server, get, answer
):
    def only_headers(handler):
        try:
            if answer.startswith(b"X"):
                handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while not server.over.is_set():
                handler.wfile.write(answer)
        except OSError:
            pass

    server.answers = [only_headers] * (len(PAUSES_S) + 1)
    with pytest.raises(UserError, match=r"no end before the file begins|the connection broke") as e:
        get()
    sentence = str(e.value)
    assert len(sentence) < 1000
    assert sentence.isprintable()


def test_the_endless_page_of_a_redirection_is_not_read(server, get):
    def redirects(handler):
        handler.send_response(302)
        handler.send_header("Location", "/elsewhere")
        handler.end_headers()
        try:
            while not server.over.is_set():
                handler.wfile.write(b"x" * 50_000)
        except OSError:
            pass

    server.answers = [redirects]
    assert get().read_bytes() == CONTENT


def test_a_file_that_does_not_fit_on_the_disk_is_refused_before_it_is_fetched(
    server, get, tmp_path
):
    server.answers = [lambda handler: handler.send(200, b"x", Content_Length=10**17)]
    with pytest.raises(StorageError, match=r"corpus\.bin: 100,000,000,000 MB do not fit into"):
        get()


def test_a_download_stops_before_the_disk_is_full(server, get, monkeypatch):
    free = iter([10_000_000, 5_000_000, 200_000])
    monkeypatch.setattr(download, "KEEP_FREE_BYTES", 150_000)
    monkeypatch.setattr(
        download.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(0, 0, next(free, 1000))
    )
    server.answers = [endless]
    with pytest.raises(StorageError, match=r"corpus\.bin: .* do not fit into"):
        get()


@pytest.mark.parametrize("length", ["²", "-1", "9" * 5000, "many"])
def test_a_length_that_is_no_number_is_no_length(server, get, length):
    server.answers = [lambda handler: handler.send(200, CONTENT, Content_Length=length)]
    assert get().read_bytes() == CONTENT


def test_a_pipe_in_a_mirror_or_in_the_cache_is_not_waited_for(get, tmp_path):
    url = "https://corpus.invalid/a/b.tgz"
    for folder in (tmp_path / "mirror", tmp_path / "cache"):
        path = cached_path(url, folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(path)
        with pytest.raises(UserError, match=r"b\.tgz: is a named pipe"):
            get(url, mirror=(tmp_path / "mirror").as_uri())


# Archives

FILES = {"training/corpus.de-en.de": b"eins\nzwei\n", "training/corpus.de-en.en": b"one\ntwo\n"}


def write_archive(path, files=FILES):
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
    else:
        with tarfile.open(path, "w:xz" if path.suffix == ".xz" else "w:gz") as archive:
            for name, content in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return path


@pytest.fixture(params=["a.tgz", "a.tar.gz", "a.tar.xz", "a.zip"])
def archive(request, tmp_path):
    return write_archive(tmp_path / request.param)


def test_members_come_out_of_every_kind_of_archive_in_the_order_asked_for(archive, tmp_path):
    names = list(reversed(FILES))
    found = extract_members(archive, names, tmp_path / "out")
    assert [path.relative_to(tmp_path / "out").as_posix() for path in found] == names
    assert [path.read_bytes() for path in found] == [FILES[name] for name in names]
    assert not list(tmp_path.rglob("*.part"))


def test_a_member_may_be_named_by_a_pattern(archive, tmp_path):
    assert extract_member(archive, "*.en", tmp_path / "out").read_bytes() == b"one\ntwo\n"


def test_a_pattern_that_fits_two_members_is_refused_with_both(archive, tmp_path):
    with pytest.raises(UserError, match=r"corpus\.de-en\.de and .*corpus\.de-en\.en"):
        extract_member(archive, "training/*", tmp_path / "out")


def test_a_member_that_is_not_there_gives_the_near_names(archive, tmp_path):
    with pytest.raises(UserError, match=r"holds no corpus\.de-en\.de.*training/corpus\.de-en\.de"):
        extract_member(archive, "corpus.de-en.de", tmp_path / "out")


def test_what_is_there_and_whole_is_not_written_again(archive, tmp_path):
    member = next(iter(FILES))
    first = extract_member(archive, member, tmp_path / "out")
    inode = first.stat().st_ino
    assert extract_member(archive, member, tmp_path / "out").stat().st_ino == inode
    first.write_bytes(b"cut")
    assert extract_member(archive, member, tmp_path / "out").read_bytes() == FILES[member]


def test_an_empty_member_is_a_file_too(tmp_path):
    archive = write_archive(tmp_path / "a.tgz", {"empty": b""})
    assert extract_member(archive, "empty", tmp_path / "out").read_bytes() == b""


@pytest.mark.parametrize("name", ["a.tgz", "a.zip"])
@pytest.mark.parametrize("member", ["../out.txt", "/tmp/out.txt", "a/../../out.txt"])
def test_a_member_that_leads_out_of_its_folder_is_refused(tmp_path, name, member):
    archive = write_archive(tmp_path / name, {member: b"evil"})
    with pytest.raises(UserError, match="leads out"):
        extract_member(archive, member, tmp_path / "deep" / "out")
    assert not (tmp_path / "deep" / "out.txt").exists()


def test_a_link_in_an_archive_is_not_a_member(tmp_path):
    with tarfile.open(tmp_path / "a.tgz", "w:gz") as archive:
        info = tarfile.TarInfo("corpus.de")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(info)
    with pytest.raises(UserError, match=r"holds no corpus\.de"):
        extract_member(tmp_path / "a.tgz", "corpus.de", tmp_path / "out")


@pytest.mark.parametrize("name", ["a.tgz", "a.tar.xz", "a.zip"])
def test_a_cut_archive_is_named_and_leaves_nothing_behind(tmp_path, name):
    archive = write_archive(tmp_path / name, {"corpus.de": random.Random(1).randbytes(200_000)})
    archive.write_bytes(archive.read_bytes()[:100_000])
    with pytest.raises(UserError, match=rf"{name}: cannot be unpacked .*remove it"):
        extract_member(archive, "corpus.de", tmp_path / "out")
    assert not (tmp_path / "out" / "corpus.de").exists()


def test_a_page_in_place_of_an_archive_is_named(tmp_path):
    (tmp_path / "a.tgz").write_text("<html>please log in</html>")
    with pytest.raises(UserError, match="cannot be unpacked"):
        extract_member(tmp_path / "a.tgz", "corpus.de", tmp_path / "out")


def test_a_plain_file_is_its_own_member(tmp_path):
    plain = tmp_path / "corpus.de.xz"
    plain.write_bytes(lzma.compress(b"eins\n"))
    assert extract_member(plain, "corpus.de.xz", tmp_path / "out") == plain
    with pytest.raises(UserError, match="not an archive"):
        extract_member(plain, "corpus.en", tmp_path / "out")


@pytest.mark.parametrize("name", ["a.tgz", "a.tar.xz", "a.zip"])
def test_an_archive_that_expands_as_no_text_does_is_not_unpacked(tmp_path, name, monkeypatch):
    monkeypatch.setattr(download, "FREELY_EXPANDED_BYTES", 100_000)
    archive = write_archive(tmp_path / name, {"corpus.de": b"a" * 10_000_000})
    with pytest.raises(
        UserError, match=rf"{name}: .* expand to 10,000,000 or more with corpus\.de"
    ):
        extract_member(archive, "corpus.de", tmp_path / "out")
    assert not (tmp_path / "out" / "corpus.de").exists()


@pytest.mark.parametrize("name", ["a.tgz", "a.zip"])
def test_a_member_that_does_not_fit_on_the_disk_is_not_unpacked(tmp_path, name, monkeypatch):
    archive = write_archive(tmp_path / name)
    monkeypatch.setattr(download, "KEEP_FREE_BYTES", shutil.disk_usage(tmp_path).total)
    with pytest.raises(StorageError, match=r"corpus\.de-en\.de: .* do not fit into"):
        extract_member(archive, "*.de", tmp_path / "out")


def test_an_encrypted_archive_is_named(tmp_path):
    archive = write_archive(tmp_path / "a.zip", {"corpus.de": b"eins"})
    content = bytearray(archive.read_bytes())
    for header, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        content[content.index(header) + flags] |= 1
    archive.write_bytes(content)
    with pytest.raises(UserError, match=r"a\.zip: corpus\.de is encrypted; unpack it by hand"):
        extract_member(archive, "corpus.de", tmp_path / "out")


def test_an_archive_with_too_many_members_is_not_read_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(download, "MOST_MEMBERS", 10)
    archive = write_archive(tmp_path / "a.tgz", {f"{n}/corpus.de": b"" for n in range(11)})
    with pytest.raises(UserError, match=r"a\.tgz: has more than 10 members"):
        extract_member(archive, "corpus.de", tmp_path / "out")


def test_a_tar_header_made_to_fill_memory_is_not_read(tmp_path):
    header = tarfile.TarInfo("name")
    header.type, header.size = tarfile.XHDTYPE, 1 << 32
    archive = tmp_path / "a.tgz"
    archive.write_bytes(gzip.compress(header.tobuf() + b"x" * 100_000))
    with pytest.raises(UserError, match=r"a\.tgz: cannot be unpacked \(a header of 4,294,967,296"):
        extract_member(archive, "corpus.de", tmp_path / "out")


@pytest.mark.parametrize("name", ["a.tgz", "a.zip"])
def test_a_whole_archive_is_unpacked_below_its_folder(tmp_path, name):
    extract_all(write_archive(tmp_path / name), tmp_path / "out")
    found = {file: (tmp_path / "out" / file).read_bytes() for file in FILES}
    assert found == FILES
    with pytest.raises(UserError, match=rf"{name}: \.\./out\.txt leads out"):
        extract_all(write_archive(tmp_path / name, {"../out.txt": b""}), tmp_path / "out")
