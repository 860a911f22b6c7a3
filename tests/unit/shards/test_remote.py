import re
import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from digits_blocks import SHARDS, published, write_blocks

from dragoman.errors import CorruptFileError, RemoteError, UserError
from dragoman.shards import remote
from dragoman.shards.passport import PreparedData
from dragoman.shards.remote import fetch_beginning, fetch_file, fetching, publish
from dragoman.storage import Store, parse_address


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return write_blocks(tmp_path_factory.mktemp("blocks"))[1]


@pytest.fixture
def store(prepared, tmp_path):
    return Store(parse_address(published(prepared, tmp_path / "there")))


def names(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_what_is_published_is_what_training_reads_and_the_passport_comes_last(
    prepared, tmp_path, monkeypatch
):
    there = Store(parse_address(f"file://{tmp_path}/there"))
    uploaded = []
    upload = there.upload
    monkeypatch.setattr(
        there, "upload", lambda name, file: uploaded.append(name) or upload(name, file)
    )
    publish(prepared, there)
    assert uploaded == prepared.files()
    assert uploaded[-1] == "data.json"
    assert names(tmp_path / "there") == set(prepared.files())
    PreparedData.open(tmp_path / "there").verify()


def test_a_host_fetches_all_but_the_training_tokens(prepared, store, tmp_path):
    here = fetch_beginning(store, tmp_path / "here")
    late = {file.name for file in prepared.passport.late_files}
    assert len(late) == SHARDS
    assert names(here.folder) == set(prepared.files()) - late | {".fetched"}
    assert here.is_fetched
    assert here.shards("train").lengths().tolist() == prepared.shards("train").lengths().tolist()
    assert here.text("validation") == prepared.text("validation")
    here.verify(may_lack_tokens=True)
    with pytest.raises(CorruptFileError, match="nothing was found"):
        here.verify()


class Web(SimpleHTTPRequestHandler):
    """Serves files and parts of them, and lists nothing."""

    def do_GET(self):
        content = Path(self.translate_path(self.path)).read_bytes()
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        begin, end = (int(asked[1]), int(asked[2]) + 1) if asked else (0, len(content))
        self.send_response(206 if asked else 200)
        self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(content)}")
        self.send_header("Content-Length", str(end - begin))
        self.end_headers()
        self.wfile.write(content[begin:end])

    def log_message(self, *_):
        pass


def test_what_lies_on_a_web_server_is_fetched_from_there(prepared, store, tmp_path):
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Web, directory=store.address.folder)
    ) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            web = Store(parse_address(f"http://127.0.0.1:{server.server_port}"))
            here = fetch_beginning(web, tmp_path / "here")
            for file in prepared.passport.late_files:
                fetch_file(web, here.folder, file, here.passport.vocabulary)
        finally:
            server.shutdown()
            thread.join()
    here.verify()


def test_a_beginning_that_was_interrupted_goes_on(store, tmp_path, monkeypatch):
    folder, download = tmp_path / "here", store.download
    fetched = []

    def break_off(name, path):
        if len(fetched) == 3:
            raise RemoteError("the connection broke", "broken")
        fetched.append(name)
        download(name, path)

    monkeypatch.setattr(store, "download", break_off)
    with pytest.raises(RemoteError, match="broke"):
        fetch_beginning(store, folder)
    assert not (folder / "data.json").exists()
    again = []
    monkeypatch.setattr(store, "download", lambda *a: again.append(a[0]) or download(*a))
    fetch_beginning(store, folder)
    assert again
    assert not set(again) & set(fetched)


def test_nobody_is_asked_where_nothing_is_missing(prepared, tmp_path):
    folder = shutil.copytree(prepared.folder, tmp_path / "here")
    nobody = None
    assert fetch_beginning(nobody, folder).passport == prepared.passport
    assert not PreparedData.open(folder).is_fetched


def test_what_is_damaged_here_is_fetched_again(prepared, store, tmp_path):
    folder = shutil.copytree(prepared.folder, tmp_path / "here")
    bounds = next(f for f in prepared.passport.splits["train"].shards if "bounds" in f.name)
    tokens = prepared.passport.late_files[0]
    for file in (bounds, tokens):
        content = bytearray((folder / file.name).read_bytes())
        content[-1] ^= 1
        (folder / file.name).write_bytes(content)
    here = fetch_beginning(store, folder)
    assert not (folder / tokens.name).exists()
    here.verify(may_lack_tokens=True)


def change_a_byte(path):
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)


def test_held_out_text_is_compared_with_the_passport_too(prepared, store, tmp_path):
    """Of the same size and as many lines, nothing else would see that it is another."""
    text = prepared.passport.splits["validation"].target.file
    folder = fetch_beginning(store, tmp_path / "here").folder
    change_a_byte(folder / text)
    with pytest.raises(CorruptFileError, match=r"sha256 .* expected"):
        PreparedData.open(folder).verify(may_lack_tokens=True)
    assert fetch_beginning(store, folder).text("validation") == prepared.text("validation")
    change_a_byte(tmp_path / "there" / text)
    with pytest.raises(CorruptFileError, match=rf"{text}: sha256 .* 2 times; publish the data"):
        fetch_beginning(store, tmp_path / "another")


def test_text_of_a_passport_without_its_hash_is_taken_as_it_is(prepared, store, tmp_path):
    path = tmp_path / "there" / "data.json"
    for side in ("source", "target"):
        for split in ("validation", "test"):
            digest = getattr(prepared.passport.splits[split], side).sha256
            path.write_text(path.read_text().replace(f'"sha256": "{digest}"', '"sha256": ""'))
    here = fetch_beginning(store, tmp_path / "here")
    assert here.passport.text_files == []
    assert here.text("test") == prepared.text("test")


def test_parts_of_files_that_a_killed_start_has_left_are_removed(prepared, store, tmp_path):
    folder = fetch_beginning(store, tmp_path / "here").folder
    for name in (prepared.passport.tokenizer_file, prepared.passport.late_files[0].name):
        path = folder / name
        for left in (f".{path.name}-123.part", f"..{path.name}.arriving-123.part"):
            (path.parent / left).write_bytes(b"half")
    fetch_beginning(store, folder)
    assert [path for path in names(folder) if "/." in path] == []


def test_what_a_start_that_was_cut_off_has_left_is_compared_with_the_passport_of_the_next(
    prepared, store, tmp_path
):
    folder = fetch_beginning(store, tmp_path / "here").folder
    (folder / "data.json").unlink()
    bounds = next(f for f in prepared.passport.splits["train"].shards if "bounds" in f.name)
    change_a_byte(folder / bounds.name)
    fetch_beginning(store, folder).verify(may_lack_tokens=True)


def test_other_data_in_the_folder_is_refused_with_both_hashes(prepared, store, tmp_path):
    folder = fetch_beginning(store, tmp_path / "here").folder
    _, other = write_blocks(tmp_path / "other")
    other.verify()
    path = tmp_path / "there" / "data.json"
    hashes = prepared.passport.content_hash[:12]
    text = path.read_text().replace(prepared.passport.tokenizer_sha256, "0" * 64)
    path.write_text(text)
    with pytest.raises(UserError, match=rf"hash {hashes}, and file://.* has .*data\.prepared"):
        fetch_beginning(store, folder)


def test_a_folder_of_something_else_is_left_alone(prepared, store, tmp_path):
    """Files that are called like prepared ones, too: an unfinished preparation has some."""
    tokens = prepared.passport.late_files[0].name
    others = {"letter.txt", "models/.x.part", prepared.passport.tokenizer_file, tokens}
    for name in others:
        path = tmp_path / "here" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("dear")
    with pytest.raises(UserError, match="not prepared data, and nothing was changed"):
        fetch_beginning(store, tmp_path / "here")
    assert names(tmp_path / "here") == others


def test_a_wrong_address_and_a_foreign_passport_are_refused(store, tmp_path):
    nowhere = Store(parse_address(f"file://{tmp_path}/nowhere"))
    with pytest.raises(RemoteError, match=r"nowhere/data\.json: there is no such object"):
        fetch_beginning(nowhere, tmp_path / "here")
    (tmp_path / "there" / "data.json").write_text("{}")
    with pytest.raises(UserError, match=r"not a data passport .*--publish"):
        fetch_beginning(store, tmp_path / "here")


@pytest.mark.parametrize("times", [1, 2])
def test_a_damaged_object_is_fetched_once_more_and_then_refused(
    prepared, store, tmp_path, monkeypatch, times
):
    file, download, tries = prepared.passport.late_files[0], store.download, []

    def damage(name, path):
        download(name, path)
        tries.append(name)
        if len(tries) <= times:
            path.write_bytes(path.read_bytes()[:-1] + b"?")

    monkeypatch.setattr(store, "download", damage)
    path = tmp_path / "here" / file.name
    if times == 1:
        fetch_file(store, tmp_path / "here", file, 60)
        assert path.read_bytes() == (prepared.folder / file.name).read_bytes()
    else:
        with pytest.raises(CorruptFileError, match=r"sha256 .* 2 times; publish the data again"):
            fetch_file(store, tmp_path / "here", file, 60)
        assert not any(path.parent.iterdir())
    assert len(tries) == 2


def test_ids_that_are_no_pieces_are_refused(prepared, store, tmp_path):
    file = prepared.passport.late_files[0]
    with pytest.raises(CorruptFileError, match="ids that are not 0 to 4"):
        fetch_file(store, tmp_path / "here", file, vocabulary=5)


def test_two_processes_do_not_fetch_into_one_folder(tmp_path):
    with (
        fetching(tmp_path),
        pytest.raises(UserError, match=r"another process fetches .*data\.prepared"),
        fetching(tmp_path),
    ):
        pass
    with fetching(tmp_path / "new"):
        assert (tmp_path / "new" / remote.LOCK).exists()
    assert not (tmp_path / "new").exists()  # nothing has come


def test_data_that_was_prepared_here_afterwards_is_not_taken_for_fetched(store, tmp_path):
    here = fetch_beginning(store, tmp_path / "here")
    path = here.folder / "data.json"
    path.write_text(path.read_text().replace(here.passport.tokenizer_sha256, "0" * 64))
    assert not PreparedData.open(here.folder).is_fetched
