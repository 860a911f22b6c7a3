import gzip
import hashlib
import importlib
import io
import json
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import sacrebleu.utils
from sacrebleu.dataset import DATASETS
from sacrebleu.dataset.fake_sgml import FakeSGMLDataset

from dragoman.corpus.public import (
    BUILT_IN,
    PublicCorpus,
    corpus_from_entry,
    fetch_public,
    fetch_test_set,
    resolve,
)
from dragoman.errors import RunError, UserError

EUROPARL = "Statmt-europarl-7-deu-eng"
EN_DE = ("en", "de")


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def mirror(tmp_path):
    """A folder in place of all servers."""
    folder = tmp_path / "mirror"
    folder.mkdir()
    return folder


def put(mirror, url, content):
    path = mirror / url.split("://")[1]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def tgz(files):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return content.getvalue()


@pytest.fixture
def europarl(mirror):
    files = {"europarl-v7.de-en.de": "eins\nzwei\n", "europarl-v7.de-en.en": "one\ntwo\n"}
    return put(mirror, "https://www.statmt.org/europarl/v7/de-en.tgz", tgz(files))


@pytest.fixture
def no_mtdata(monkeypatch):
    monkeypatch.setitem(sys.modules, "mtdata", None)


@pytest.fixture
def mtdata(tmp_path, monkeypatch):
    """A package in place of mtdata that writes these entries where mtdata writes its index."""

    def install(*entries, failing=""):
        site = tmp_path / "site"
        package, metadata = site / "mtdata", site / "mtdata-9.9.dist-info"
        for folder in (package, metadata):
            folder.mkdir(parents=True, exist_ok=True)
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: mtdata\nVersion: 9.9\n")
        (package / "__init__.py").write_text("")
        (package / "entries.jsonl").write_text("".join(json.dumps(e) + "\n" for e in entries))
        (package / "index.py").write_text(
            "import os, pathlib, shutil, sys\n"
            f"if {failing!r}: sys.exit({failing!r})\n"
            "folder = pathlib.Path(os.environ['MTDATA'])\n"
            "(folder / 'mtdata.index.9.9.pkl').write_bytes(b'a pickle')\n"
            "pathlib.Path('beside').write_text('what it leaves in the working folder')\n"
            "entries = pathlib.Path(__file__).with_name('entries.jsonl')\n"
            "shutil.copy(entries, folder / 'mtdata.index.9.9.jsonl')\n"
        )
        monkeypatch.syspath_prepend(site)
        monkeypatch.setenv("PYTHONPATH", str(site))
        importlib.invalidate_caches()

    return install


NEWS = {
    "did": "Statmt-news_commentary-18-deu-eng",
    "url": "http://data.statmt.org/news-commentary-v18.de-en.tsv.gz",
    "ext": "tsv.gz",
}
BOOKS = {
    "did": "OPUS-books-v1-deu-eng",
    "url": "https://object.pouta.csc.fi/OPUS-Books/v1/moses/de-en.txt.zip",
    "ext": "zip",
    "in_paths": ["*.de", "*.en"],
    "in_ext": "txt",
    "is_archive": True,
}


@pytest.mark.parametrize(
    ("languages", "sides"),
    [
        (("en", "de"), ("one\ntwo\n", "eins\nzwei\n")),
        (("de", "en"), ("eins\nzwei\n", "one\ntwo\n")),
        (("eng", "deu"), ("one\ntwo\n", "eins\nzwei\n")),
        (("en-US", "de_AT"), ("one\ntwo\n", "eins\nzwei\n")),
    ],
)
def test_the_sides_come_in_the_order_asked_for(cache, mirror, europarl, languages, sides):
    found = fetch_public(EUROPARL, languages, cache, mirror.as_uri())
    assert tuple(path.read_text() for path in found) == sides


def test_other_languages_are_refused_before_anything_is_fetched(cache, mirror):
    with pytest.raises(UserError, match=r"deu and eng.* fr and en"):
        fetch_public(EUROPARL, ("fr", "en"), cache, mirror.as_uri())


def test_what_was_unpacked_is_used_when_its_archive_is_gone(cache, mirror, europarl):
    first = fetch_public(EUROPARL, EN_DE, cache, mirror.as_uri())
    europarl.unlink()
    shutil.rmtree(cache / "www.statmt.org")
    assert fetch_public(EUROPARL, EN_DE, cache, mirror.as_uri()) == first


def test_a_side_that_was_cut_since_is_unpacked_again(cache, mirror, europarl):
    english, _ = fetch_public(EUROPARL, EN_DE, cache, mirror.as_uri())
    english.write_text("on")
    assert fetch_public(EUROPARL, EN_DE, cache, mirror.as_uri())[0].read_text() == "one\ntwo\n"


def test_an_archive_that_is_not_the_one_of_wmt_is_refused(cache, mirror):
    corpus = BUILT_IN["Statmt-commoncrawl_wmt13-1-deu-eng"]
    put(mirror, corpus.urls[0], tgz(dict.fromkeys(corpus.members, "other\n")))
    with pytest.raises(UserError, match=f"should be {corpus.sha256}"):
        fetch_public(corpus.name, EN_DE, cache, mirror.as_uri())


def test_built_in_corpora_need_no_mtdata(cache, no_mtdata):
    for name in BUILT_IN:
        assert resolve(name, cache).name == name


def test_without_mtdata_a_sentence_says_what_to_install(cache, no_mtdata):
    with pytest.raises(UserError, match=r"pip install .*\[mtdata\]"):
        fetch_public("OPUS-books-v1-deu-eng", EN_DE, cache)


def test_other_corpora_are_looked_up_in_the_index_of_mtdata(cache, mtdata):
    mtdata(NEWS, BOOKS)
    assert resolve("OPUS-books-v1-deu-eng", cache) == PublicCorpus(
        name="OPUS-books-v1-deu-eng",
        languages=("deu", "eng"),
        urls=("https://object.pouta.csc.fi/OPUS-Books/v1/moses/de-en.txt.zip",),
        members=("*.de", "*.en"),
    )


def test_mtdata_leaves_its_index_in_the_cache_and_nothing_else_anywhere(
    cache, mtdata, tmp_path, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    mtdata(NEWS)
    resolve(NEWS["did"], cache)
    left = {path.name for path in (cache / "mtdata").iterdir()}
    assert left == {"index-9.9.jsonl", "index-9.9.jsonl.lock"}
    assert not (tmp_path / "home").exists()
    assert not (tmp_path / "beside").exists()


def test_the_index_is_built_once(cache, mtdata):
    mtdata(NEWS)
    resolve(NEWS["did"], cache)
    mtdata(NEWS, failing="built again")
    assert resolve(NEWS["did"], cache).format == "table"


def test_an_index_that_cannot_be_built_says_what_mtdata_said(cache, mtdata):
    mtdata(failing="no such thing")
    with pytest.raises(RunError, match=r"mtdata 9\.9 .*no such thing"):
        resolve("OPUS-books-v1-deu-eng", cache)


def test_an_unknown_name_gives_the_near_ones_of_its_languages(cache, mtdata):
    mtdata(NEWS, BOOKS, BOOKS | {"did": "OPUS-books-v1-fra-ita"})
    with pytest.raises(UserError, match="OPUS-books-v1-deu-eng") as caught:
        resolve("OPUS-books-v2-eng-deu", cache)
    assert "fra-ita" not in str(caught.value)


def test_a_table_becomes_two_files_without_the_lines_between_documents(
    cache, mirror, mtdata, caplog
):
    mtdata(NEWS)
    table = "eins\tone\n\t\n\n\tonly English\nzwei \t two\tand more\n"
    put(mirror, NEWS["url"], gzip.compress(table.encode()))
    english, german = fetch_public(NEWS["did"], EN_DE, cache, mirror.as_uri())
    assert english.read_text() == "one\ntwo\n"
    assert german.read_text() == "eins\nzwei\n"
    assert "skipped 3 of 5 lines" in caplog.text


def test_the_columns_of_a_table_are_those_of_its_entry(cache, mirror, mtdata):
    mtdata(NEWS | {"cols": [2, 1]})
    put(mirror, NEWS["url"], gzip.compress(b"\tone\teins\n"))
    english, german = fetch_public(NEWS["did"], EN_DE, cache, mirror.as_uri())
    assert (english.read_text(), german.read_text()) == ("one\n", "eins\n")


def test_a_table_without_pairs_is_refused(cache, mirror, mtdata):
    mtdata(NEWS)
    put(mirror, NEWS["url"], gzip.compress(b"<html>\nmoved\n"))
    with pytest.raises(UserError, match="none of its 2 lines"):
        fetch_public(NEWS["did"], EN_DE, cache, mirror.as_uri())


def test_members_named_by_patterns_are_found_in_their_archive(cache, mirror, mtdata):
    mtdata(BOOKS)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in ("README", "Books.de-en.de", "Books.de-en.en"):
            archive.writestr(name, f"{name}\n")
    put(mirror, BOOKS["url"], content.getvalue())
    found = fetch_public(BOOKS["did"], EN_DE, cache, mirror.as_uri())
    assert [path.name for path in found] == ["Books.de-en.en", "Books.de-en.de"]


def test_a_file_a_language_is_used_as_it_was_fetched(cache, mirror, mtdata):
    urls = ["https://corpus.invalid/a.de.gz", "https://corpus.invalid/a.en.gz"]
    mtdata({"did": "Own-pair-1-deu-eng", "url": urls, "ext": "txt.gz"})
    for url in urls:
        put(mirror, url, gzip.compress(url.encode()))
    english, german = fetch_public("Own-pair-1-deu-eng", EN_DE, cache, mirror.as_uri())
    assert gzip.decompress(english.read_bytes()).decode() == urls[1]
    assert gzip.decompress(german.read_bytes()).decode() == urls[0]


@pytest.mark.parametrize(
    "entry",
    [
        BOOKS | {"in_ext": "tmx", "in_paths": ["*.tmx"]},
        BOOKS | {"in_paths": ["*.de"]},
        NEWS | {"did": "Statmt-news-1-deu"},
        NEWS | {"ext": "xlsx"},
    ],
)
def test_formats_that_are_not_read_are_refused_with_what_to_do(entry):
    with pytest.raises(UserError, match="mtdata get"):
        corpus_from_entry(entry)


# Test sets

TINY_URL = "https://corpus.invalid/tiny/test.tgz"
TINY = {
    "test/tiny-src.en.sgm": (
        '<srcset>\n<doc docid="a" genre="news" origlang="en">\n'
        '<seg id="1"> Fish &amp;  chips </seg>\n<seg id="2">Two</seg>\n</doc>\n</srcset>\n'
    ),
    "test/tiny-ref.de.sgm": (
        '<refset>\n<doc docid="a" genre="news" origlang="en">\n'
        '<seg id="1">Fisch und Pommes</seg>\n<seg id="2">Zwei</seg>\n</doc>\n</refset>\n'
    ),
}


@pytest.fixture
def tiny(mirror, monkeypatch):
    archive = put(mirror, TINY_URL, tgz(TINY))
    dataset = FakeSGMLDataset(
        "tiny/full",
        data=[TINY_URL],
        md5=[hashlib.md5(archive.read_bytes()).hexdigest()],
        langpairs={"en-de": list(TINY)},
    )
    monkeypatch.setitem(DATASETS, "tiny/full", dataset)
    return archive


def test_a_test_set_is_the_text_that_sacrebleu_scores(cache, mirror, tiny):
    source, reference = fetch_test_set("tiny/full", "en-de", cache, mirror.as_uri())
    assert source.read_text() == "Fish &amp; chips\nTwo\n"
    assert reference.read_text() == "Fisch und Pommes\nZwei\n"
    assert source.is_relative_to(cache)
    assert not Path(sacrebleu.utils.SACREBLEU_DIR, "tiny").exists()
    assert {path.name for path in source.parent.iterdir()} == {
        "tiny_full.en-de.src",
        "tiny_full.en-de.ref",
        "tiny_full.en-de.src.lock",
    }


def test_a_test_set_is_fetched_once(cache, mirror, tiny):
    first = fetch_test_set("tiny/full", "en-de", cache, mirror.as_uri())
    tiny.unlink()
    shutil.rmtree(cache / "corpus.invalid")
    assert fetch_test_set("tiny/full", "en-de", cache, mirror.as_uri()) == first


def test_newstest2014_is_checked_by_the_hash_that_sacrebleu_keeps(cache, mirror):
    put(mirror, "https://statmt.org/wmt14/test-filtered.tgz", tgz(TINY))
    with pytest.raises(UserError, match="should be 84c597844c1542e29c2aff23aaee4310"):
        fetch_test_set("wmt14", "en-de", cache, mirror.as_uri())


def test_a_test_set_that_cannot_be_had_says_where_to_put_it(cache, mirror):
    with pytest.raises(UserError) as caught:
        fetch_test_set("wmt13", "en-de", cache, mirror.as_uri())
    assert str(cache / "statmt.org" / "wmt13" / "test.tgz") in str(caught.value)


def test_an_unknown_test_set_gives_the_near_ones(cache):
    with pytest.raises(UserError, match=r"near it:.*wmt14/full"):
        fetch_test_set("wmt14/ful", "en-de", cache)


def test_a_pair_that_a_test_set_has_not_is_answered_with_those_it_has(cache):
    with pytest.raises(UserError, match=r"wmt14: .*en-xx.*en-de"):
        fetch_test_set("wmt14", "en-xx", cache)
