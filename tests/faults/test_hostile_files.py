"""Files that were damaged, or made to do harm: a reader gives pairs or one sentence, and ends."""

import bz2
import gzip
import io
import lzma
import os
import struct
import sys
import tarfile
import zipfile
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.corpus import gettext
from dragoman.corpus.download import extract_member
from dragoman.corpus.gettext import find_catalogs, read_catalog
from dragoman.corpus.jsonl import read_jsonl
from dragoman.corpus.tmx import read_tmx
from dragoman.corpus.tsv import read_tsv
from dragoman.errors import DragomanError, UserError

Result = TypeVar("Result")

PO = rb"""
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

#, c-format
msgctxt "menu"
msgid "E_xit %d"
msgid_plural "Exit \"all\" (_Q)\x41"
msgstr[0] "B_eenden"
msgstr[1] "Alle "
"beenden\n"
"""
TMX = b"""<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="en"><seg>one &amp; <bpt>x</bpt>two</seg></tuv>
<tuv xml:lang="de-AT"><seg>eins &#252; zwei</seg></tuv></tu></body></tmx>
"""
JSONL = b'{"en": "one \\u00fc", "de": "eins", "n": [1.5e3, null]}\n{"en": "", "de": "\xc3\xbc"}\n'
TSV = "one\teins\tx\n\ufeffzwei ü\ttwo\n".encode()


def compiled_catalog(entries: list[tuple[int, int]], content: bytes = b"") -> bytes:
    """A .mo file of (length, offset) entries: first those of the ids, then the translations."""
    count = len(entries) // 2
    head = struct.pack("<7I", 0x950412DE, 0, count, 28, 28 + 8 * count, 0, 0)
    return head + b"".join(struct.pack("<2I", *entry) for entry in entries) + content


MO = compiled_catalog(
    [(0, 60), (7, 60), (26, 68), (9, 95)],
    b"one\0two\0charset=utf-8\nplural=n>1;\n\0eins\0zwei",
)


def packed_zip() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("corpus.en", b"one\ntwo\n" * 50)
        archive.writestr("corpus.de", b"eins\nzwei\n" * 50)
    return packed.getvalue()


def packed_tar(mode: str) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode, format=tarfile.PAX_FORMAT) as archive:
        for name in ("corpus." + "ä" * 120, "corpus.de"):
            info = tarfile.TarInfo(name)
            info.size = 200
            archive.addfile(info, io.BytesIO(b"eins\n" * 40))
    return packed.getvalue()


READERS = {
    "a.po": (PO, read_catalog),
    "a.mo": (MO, read_catalog),
    "a.tmx": (TMX, partial(read_tmx, source_language="en", target_language="de")),
    "a.jsonl": (JSONL, partial(read_jsonl, source_key="en", target_key="de")),
    "a.tsv": (TSV, partial(read_tsv, source_column=1, target_column=2)),
    "a.tsv.gz": (gzip.compress(TSV), partial(read_tsv, source_column=1, target_column=2)),
    "a.tsv.xz": (lzma.compress(TSV), partial(read_tsv, source_column=1, target_column=2)),
    "a.tsv.bz2": (bz2.compress(TSV), partial(read_tsv, source_column=1, target_column=2)),
}
ARCHIVES = {"a.zip": packed_zip(), "a.tar": packed_tar("w"), "a.tgz": packed_tar("w:gz")}


def attempt(action: Callable[[], Result]) -> tuple[Result | None, str | None]:
    """The result, or the sentence about why there is none."""
    try:
        return action(), None
    except DragomanError as error:
        return None, str(error)


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """The bytes of a good file with some of them changed, inserted, repeated or cut away."""
    content = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, max(0, len(content) - 1)))
        end = begin + draw(st.integers(0, 12))
        content[begin:end] = draw(
            st.binary(max_size=12)
            | st.sampled_from(
                [b"\xff\xff\xff\xff", b"\0", b'"', b"\\", b"&a;", b"<tu>", b"-", b"9"]
            )
            | st.just(bytes(content[begin:end] * 3))
        )
    return bytes(content)


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_gives_text_or_one_sentence(name, tmp_path):
    whole, read = READERS[name]
    path = tmp_path / name
    path.write_bytes(whole)
    assert list(read(path)), "the file that is to be damaged is good"

    @settings(max_examples=250, derandomize=True, deadline=None, database=None)
    @given(damaged(whole))
    def check(content: bytes) -> None:
        path.write_bytes(content)
        pairs, problem = attempt(lambda: list(read(path)))
        assert problem is None or str(path) in problem
        for pair in pairs or ():
            assert b"\n" not in "".join(pair).encode()

    check()


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_damaged_archive_gives_its_member_or_one_sentence(name, tmp_path):
    path = tmp_path / name

    @settings(max_examples=200, derandomize=True, deadline=None, database=None)
    @given(damaged(ARCHIVES[name]))
    def check(content: bytes) -> None:
        path.write_bytes(content)
        _, problem = attempt(lambda: extract_member(path, "corpus.de", tmp_path / "out").unlink())
        assert problem is None or str(path) in problem

    check()


def test_entities_that_contain_each_other_are_refused_before_they_grow(tmp_path):
    laughs = "".join(f'<!ENTITY l{n + 1} "{f"&l{n};" * 10}">' for n in range(20))
    path = tmp_path / "a.tmx"
    path.write_text(f'<!DOCTYPE tmx [<!ENTITY l0 "ha">{laughs}]><tmx><body>&l20;</body></tmx>')
    with pytest.raises(UserError, match=r"a\.tmx, line 1, .* declares the entity l0"):
        list(read_tmx(path, "en", "de"))


def test_entities_of_other_files_are_refused(tmp_path):
    (tmp_path / "secret").write_text("secret")
    path = tmp_path / "a.tmx"
    path.write_text(f'<!DOCTYPE tmx [<!ENTITY x SYSTEM "{tmp_path}/secret">]><tmx>&x;</tmx>')
    with pytest.raises(UserError, match=r"a\.tmx, line 1, .* declares the entity x"):
        list(read_tmx(path, "en", "de"))


def test_json_nested_too_deeply_is_named(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"en": ' + "[" * 100_000 + "]" * 100_000 + "}\n")
    with pytest.raises(UserError, match=r"a\.jsonl, line 1: not JSON"):
        list(read_jsonl(path, "en", "de"))


def test_a_nested_value_in_place_of_a_text_is_named_whatever_its_depth(tmp_path):
    path = tmp_path / "a.jsonl"
    depth = sys.getrecursionlimit() * 9 // 10
    path.write_text('{"en": ' + "[" * depth + "]" * depth + ', "de": ""}\n')
    with pytest.raises(UserError, match=r"has a list, which is not a text|not JSON"):
        list(read_jsonl(path, "en", "de"))


def test_a_compiled_catalog_whose_messages_overlap_does_not_outgrow_its_file(tmp_path):
    entries = [(60_000, 160_028)] * 20_000
    path = tmp_path / "a.mo"
    path.write_bytes(compiled_catalog(entries, b"\1" * 60_000))
    with pytest.raises(UserError, match=r"a\.mo: its messages add up to more than 20 times"):
        list(read_catalog(path))


def test_a_compiled_catalog_with_absurd_offsets_is_not_whole(tmp_path):
    path = tmp_path / "a.mo"
    for content in (
        compiled_catalog([(0xFFFFFFFF, 0xFFFFFFFF)] * 2),
        struct.pack("<7I", 0x950412DE, 0, 0xFFFFFFFF, 0xFFFFFFF0, 28, 0, 0),
    ):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"a\.mo: not a complete catalog"):
            list(read_catalog(path))


@pytest.mark.parametrize("charset", ["punycode", "idna", "utf-7", "unicode_escape", "hex"])
def test_a_codec_that_is_no_charset_is_refused(tmp_path, charset):
    path = tmp_path / "a.po"
    path.write_bytes(PO.replace(b"UTF-8", charset.encode()))
    with pytest.raises(UserError, match=rf"a\.po: the charset {charset} of the header is unknown"):
        list(read_catalog(path))


def test_a_catalog_larger_than_any_is_not_read_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(gettext, "LARGEST_CATALOG_BYTES", 3_000_000)
    path = tmp_path / "a.po"
    path.write_bytes(PO + b"#\n" * 2_000_000)
    with pytest.raises(UserError, match=r"a\.po: holds more than 3 MB"):
        list(read_catalog(path))


def test_a_plural_rule_that_counts_below_zero_takes_the_last_form(tmp_path):
    path = tmp_path / "a.po"
    path.write_bytes(PO.replace(b"plural=(n != 1)", b"plural=n-9"))
    assert [pair.target for pair in read_catalog(path)][-1] == "Alle beenden"


@pytest.mark.parametrize(
    "text", [" " * 300_000 + "_a x", "a" * 300_000 + " &x", "(" * 300_000 + "_"]
)
def test_a_monstrous_message_is_read_in_a_moment(tmp_path, text):
    path = tmp_path / "a.po"
    path.write_text(f'msgid "{text}"\nmsgstr "{text}"\n' + '"a"\n' * 300_000)
    (pair,) = read_catalog(path)
    assert len(pair.target) > 300_000


def test_folders_and_pipes_among_catalogs_are_passed_over(tmp_path):
    (tmp_path / "de.po").mkdir()
    (tmp_path / "de").mkdir()
    os.mkfifo(tmp_path / "de" / "pipe.mo")
    (tmp_path / "de" / "good.po").write_bytes(PO)
    assert find_catalogs(tmp_path, "de") == [tmp_path / "de" / "good.po"]
