import bz2
import gzip
import lzma

import pytest

from dragoman.config import DataSettings, PhrasebookSource, TextSource
from dragoman.corpus.sources import input_files, languages_of, read_pairs
from dragoman.errors import UserError


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
    with pytest.raises(UserError, match=rf"b\.{suffix}.*bring it again"):
        list(read_pairs(data(tmp_path, source), "train"))


def test_sides_of_different_length_are_refused_with_the_line(tmp_path):
    write(tmp_path, b"one\ntwo\nthree\n", b"eins\nzwei\n")
    with pytest.raises(UserError, match=r"a\.de ends after line 2, but .*a\.en goes on"):
        list(read_pairs(data(tmp_path), "train"))


def test_bytes_that_are_not_utf8_are_refused_with_file_and_line(tmp_path):
    write(tmp_path, b"one\ntwo\n", b"eins\nf\xfcnf\n")
    with pytest.raises(UserError, match=r"a\.de, line 2: not UTF-8"):
        list(read_pairs(data(tmp_path), "train"))


def test_empty_and_missing_files_are_named(tmp_path):
    with pytest.raises(UserError, match=r"a\.en: no such file"):
        list(read_pairs(data(tmp_path), "train"))
    write(tmp_path, b"", b"")
    with pytest.raises(UserError, match=r"a\.en and .*a\.de are empty"):
        list(read_pairs(data(tmp_path), "train"))


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
