import bz2
import dataclasses
import gzip
import hashlib
import io
import lzma
import tarfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from dragoman.config import (
    DataSettings,
    GettextSource,
    JsonlSource,
    MtdataSource,
    PhrasebookSource,
    SacrebleuSource,
    TextSource,
    TmxSource,
    TsvSource,
)
from dragoman.corpus import public
from dragoman.corpus.sources import (
    describe,
    input_files,
    languages_of,
    read_source,
    sources_of,
)
from dragoman.errors import DragomanError, UserError


def read_pairs(settings, split):
    """Yields all pairs of a split, source after source."""
    for source in sources_of(settings, split):
        yield from read_source(source, settings, split)


def data(folder, *train, target_language="de"):
    source = TextSource(kind="text", source="a.en", target="a.de")
    return DataSettings(
        source_language="en",
        target_language=target_language,
        folder=str(folder),
        train=train or (source,),
        validation=(source,),
    )


def write(folder, english, german):
    (folder / "a.en").write_bytes(english)
    (folder / "a.de").write_bytes(german)


def test_lines_are_paired_by_number_and_trimmed(tmp_path):
    write(tmp_path, b"one \r\n\ttwo\n", b"eins\nzwei")
    assert list(read_pairs(data(tmp_path), "train")) == [("one", "eins"), ("two", "zwei")]


def test_unicode_line_separators_inside_a_line_do_not_shift_the_sides(tmp_path):
    write(tmp_path, "a\u2028b\nc\x0bd\x85e\nf".encode(), b"1\n2\n3")
    pairs = list(read_pairs(data(tmp_path), "train"))
    assert [pair.target for pair in pairs] == ["1", "2", "3"]
    assert pairs[0].source == "a\u2028b"


@pytest.mark.parametrize(
    ("suffix", "compress"), [("gz", gzip.compress), ("xz", lzma.compress), ("bz2", bz2.compress)]
)
def test_compressed_files_read_like_plain_ones(tmp_path, suffix, compress):
    for side, content in (("en", b"one\n"), ("de", b"eins\n")):
        (tmp_path / f"b.{side}.{suffix}").write_bytes(compress(content))
    source = TextSource(kind="text", source=f"b.en.{suffix}", target=f"b.de.{suffix}")
    assert list(read_pairs(data(tmp_path, source), "train")) == [("one", "eins")]


@pytest.mark.parametrize("suffix", ["gz", "xz", "bz2"])
def test_a_truncated_archive_is_named(tmp_path, suffix):
    compress = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}[suffix]
    whole = compress(b"".join(b"line %d\n" % n for n in range(10_000)))
    (tmp_path / f"b.{suffix}").write_bytes(whole[: len(whole) // 2])
    source = TextSource(kind="text", source=f"b.{suffix}", target=f"b.{suffix}")
    with pytest.raises(UserError, match=rf"b\.{suffix}.*get it again"):
        list(read_pairs(data(tmp_path, source), "train"))


def test_sides_of_different_length_are_refused_with_the_line(tmp_path):
    write(tmp_path, b"one\ntwo\nthree\n", b"eins\nzwei\n")
    with pytest.raises(UserError, match=r"a\.de .*line 2.*a\.en"):
        list(read_pairs(data(tmp_path), "train"))


def test_bytes_that_are_not_utf8_are_refused_with_file_and_line(tmp_path):
    write(tmp_path, b"one\ntwo\n", b"eins\nf\xfcnf\n")
    with pytest.raises(UserError, match=r"a\.de, line 2: not UTF-8"):
        list(read_pairs(data(tmp_path), "train"))


def test_empty_and_missing_files_are_named(tmp_path):
    with pytest.raises(UserError, match=r"a\.en: no such file"):
        list(read_pairs(data(tmp_path), "train"))
    write(tmp_path, b"", b"")
    with pytest.raises(UserError, match=r"a\.en \+ a\.de: "):
        list(read_pairs(data(tmp_path), "train"))


def test_a_memory_without_the_languages_is_told_apart_from_a_small_one(tmp_path):
    (tmp_path / "a.tmx").write_text(TMX, encoding="utf-8")
    source = TmxSource(kind="tmx", file="a.tmx", languages="fr-nl")
    with pytest.raises(UserError, match=r"a\.tmx: .* fr and nl"):
        list(read_pairs(data(tmp_path, source), "train"))


def test_the_phrasebook_is_english_german_only(tmp_path):
    source = PhrasebookSource(kind="phrasebook", pairs=3)
    with pytest.raises(UserError, match="English-German"):
        list(read_pairs(data(tmp_path, source, target_language="fr"), "train"))


def test_every_input_file_is_listed_once(tmp_path):
    files = input_files(data(tmp_path), "train", "validation")
    assert files == [tmp_path / "a.en", tmp_path / "a.de"]


def test_a_source_of_the_reversed_pair_swaps_its_sides(tmp_path):
    write(tmp_path, b"one\n", b"eins\n")
    source = TextSource(kind="text", source="a.de", target="a.en", languages="de-en")
    assert list(read_pairs(data(tmp_path, source), "train")) == [("one", "eins")]
    assert languages_of(source, data(tmp_path)) == ("en", "de")
    other = TextSource(kind="text", source="a.de", target="a.en", languages="fr-nl")
    assert languages_of(other, data(tmp_path)) == ("fr", "nl")


TMX = """<?xml version="1.0"?>
<tmx version="1.4"><header srclang="en"/><body><tu>
<tuv xml:lang="en"><seg>one</seg></tuv><tuv xml:lang="de"><seg>eins</seg></tuv>
</tu></body></tmx>
"""
CATALOG = """msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\n"

msgid "one"
msgstr "eins"
"""


@pytest.mark.parametrize(
    ("name", "content", "source"),
    [
        ("a.tsv", "x\tone\teins\n", {"kind": "tsv", "source_column": 2, "target_column": 3}),
        (
            "a.jsonl",
            '{"t": {"en": "one", "de": "eins"}}\n',
            {"kind": "jsonl", "source_key": "t.en", "target_key": "t.de"},
        ),
        ("a.tmx", TMX, {"kind": "tmx"}),
    ],
)
def test_every_format_gives_the_same_pairs(tmp_path, name, content, source):
    (tmp_path / name).write_text(content, encoding="utf-8")
    kinds = {"tsv": TsvSource, "jsonl": JsonlSource, "tmx": TmxSource}
    settings = kinds[source["kind"]](file=name, **source)
    assert list(read_pairs(data(tmp_path, settings), "train")) == [("one", "eins")]
    assert input_files(data(tmp_path, settings), "train") == [tmp_path / name]
    assert describe(settings) == name


def test_message_catalogs_are_found_in_their_folder(tmp_path):
    (tmp_path / "po").mkdir()
    (tmp_path / "po" / "de.po").write_text(CATALOG, encoding="utf-8")
    source = GettextSource(kind="gettext", folder="po")
    assert list(read_pairs(data(tmp_path, source), "train")) == [("one", "eins")]
    with pytest.raises(UserError, match=r"catalogs .*\bfr\b"):
        list(read_pairs(data(tmp_path, source, target_language="fr"), "train"))


@pytest.fixture
def server(tmp_path):
    """The folder `served`, over HTTP on this machine."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = partial(QuietHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{http.server_port}"
        http.shutdown()
        thread.join()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


def cached(folder, source, **more):
    return data(folder, source).model_copy(update={"cache": str(folder / "cache"), **more})


def test_a_file_at_an_address_is_fetched_once_and_checked(tmp_path, server):
    folder, address = server
    contents = {"a.en": b"one\n", "a.de": b"eins\n"}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    hashes = tuple(hashlib.sha256(content).hexdigest() for content in contents.values())
    source = TextSource(
        kind="text", source=f"{address}/a.en", target=f"{address}/a.de", sha256=hashes
    )
    settings = cached(tmp_path, source)
    assert list(read_pairs(settings, "train")) == [("one", "eins")]
    for name in contents:
        (folder / name).unlink()
    assert list(read_pairs(settings, "train")) == [("one", "eins")]

    wrong = source.model_copy(update={"sha256": (hashes[0], "0" * 64)})
    with pytest.raises(DragomanError, match="sha256"):
        list(read_pairs(cached(tmp_path, wrong), "train"))


def test_a_public_corpus_comes_from_a_mirror_in_the_order_asked_for(tmp_path, server):
    folder, address = server
    place = folder / "data.statmt.org/wmt16/translation-task/training-parallel-nc-v11.tgz"
    place.parent.mkdir(parents=True)
    with tarfile.open(place, "w:gz") as archive:
        for language, text in (("de", b"eins\n"), ("en", b"one\n")):
            name = f"training-parallel-nc-v11/news-commentary-v11.de-en.{language}"
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    source = MtdataSource(kind="mtdata", name="Statmt-news_commentary_wmt16-11-deu-eng")
    settings = cached(tmp_path, source, mirror=address)
    with pytest.raises(DragomanError, match="sha256"):
        list(read_pairs(settings, "train"))  # these two lines are not the real corpus
    corpus = public.BUILT_IN[source.name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(public.BUILT_IN, source.name, dataclasses.replace(corpus, sha256=None))
        assert list(read_pairs(settings, "train")) == [("one", "eins")]


def test_without_a_network_a_sentence_says_where_to_bring_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr("dragoman.corpus.download.resumable.PAUSES_S", ())
    source = SacrebleuSource(kind="sacrebleu", name="wmt13")
    settings = cached(tmp_path, source, mirror="http://127.0.0.1:9")
    with pytest.raises(UserError, match=r"cache/.*data\.mirror") as caught:
        list(read_pairs(settings, "train"))
    assert "\n" not in str(caught.value)
