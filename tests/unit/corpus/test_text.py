import bz2
import gzip
import io
import lzma
import os
import socket
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.corpus import text
from dragoman.corpus.text import (
    BLOCK_BYTES,
    LONGEST_LINE_BYTES,
    about_lines,
    decode_lines,
    one_line,
    read_lines,
    read_raw_lines,
)
from dragoman.errors import UserError

COMPRESS = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}


def write(folder, content, name="a.txt"):
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"one", b"one\n", b"one\n\n", b"\none", b"one\ntwo\nthree"]
)
def test_lines_end_at_line_feeds_and_the_last_one_needs_none(tmp_path, content):
    expected = content.decode().removesuffix("\n").split("\n") if content else []
    assert list(read_lines(write(tmp_path, content))) == expected


def test_lines_that_lie_across_blocks_stay_whole(tmp_path):
    lines = [f"{number} {'ä' * (number % 97)}".strip() for number in range(5000)]
    content = "\n".join(lines).encode()
    assert len(content) > 3 * BLOCK_BYTES
    assert list(read_lines(write(tmp_path, content))) == lines


def test_raw_lines_keep_white_space_at_their_ends(tmp_path):
    path = write(tmp_path, b"\ta \n b\t\r\n")
    assert list(read_raw_lines(path)) == ["\ta ", " b\t\r"]
    assert list(read_lines(path)) == ["a", "b"]


def test_a_byte_order_mark_is_dropped_at_the_start_only(tmp_path):
    path = write(tmp_path, "\ufeffone\n\ufefftwo\n".encode())
    assert list(read_lines(path)) == ["one", "\ufefftwo"]
    with path.open("rb") as file:
        assert list(decode_lines(file, "a block a line")) == ["one", "\ufefftwo"]


def test_a_nul_byte_is_refused_with_file_and_line(tmp_path):
    path = write(tmp_path, b"one\ntwo\nth\0ree\n")
    with pytest.raises(UserError, match=r"a\.txt, line 3: .*NUL"):
        list(read_lines(path))


def test_the_line_of_a_bad_byte_is_right_many_blocks_into_a_file(tmp_path):
    path = write(tmp_path, b"0123456789\n" * 50_000 + b"ab\xff\n")
    with pytest.raises(UserError, match=r"a\.txt, line 50001: not UTF-8 .* at byte 2\)"):
        list(read_lines(path))


def test_a_file_that_changes_its_encoding_is_not_utf8_from_there(tmp_path):
    path = write(tmp_path, "fünf\n".encode() + "fünf\n".encode("latin-1"))
    with pytest.raises(UserError, match=r"a\.txt, line 2: not UTF-8"):
        list(read_lines(path))


def test_the_longest_line_is_read_and_one_byte_more_is_refused(tmp_path):
    longest = b"a" * LONGEST_LINE_BYTES
    assert len(list(read_lines(write(tmp_path, b"b\n" + longest + b"\nc\n")))) == 3
    path = write(tmp_path, b"b\n" + longest + b"a\nc\n")
    with pytest.raises(UserError, match=r"a\.txt, line 2: .* 10 MB"):
        list(read_lines(path))


def test_an_archive_that_unpacks_to_one_endless_line_is_not_unpacked(tmp_path, monkeypatch):
    read = []
    plain_read1 = gzip.GzipFile.read1

    def counted_read1(self, size):
        read.append(plain_read1(self, size))
        return read[-1]

    monkeypatch.setattr(gzip.GzipFile, "read1", counted_read1)
    path = write(tmp_path, gzip.compress(b"a" * (3 * LONGEST_LINE_BYTES)), "bomb.gz")
    with pytest.raises(UserError, match=r"bomb\.gz, line 1: .* 10 MB"):
        list(read_lines(path))
    assert sum(map(len, read)) <= LONGEST_LINE_BYTES + BLOCK_BYTES


def test_an_archive_that_expands_as_no_text_does_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "FREELY_EXPANDED_BYTES", 100_000)
    for suffix, compress in COMPRESS.items():
        path = write(tmp_path, compress(b"line\n" * 400_000), f"bomb.{suffix}")
        with pytest.raises(UserError, match=rf"bomb\.{suffix}: .* 200 times"):
            list(read_lines(path))
    small = write(tmp_path, gzip.compress(b"line\n" * 20_000), "small.gz")
    assert len(list(read_lines(small))) == 20_000


@pytest.mark.parametrize("name", ["pipe", "socket", "folder", "/dev/zero"])
def test_what_is_not_a_regular_file_is_named_and_not_waited_for(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a socket's name must be short
    path = tmp_path / name
    with socket.socket(socket.AF_UNIX) as listening:
        if name == "pipe":
            os.mkfifo(path)
        elif name == "socket":
            listening.bind(name)
        elif name == "folder":
            path.mkdir()
        kind = {"pipe": "a named pipe", "socket": "a socket", "folder": "a folder"}
        with pytest.raises(UserError) as caught:
            list(read_lines(path))
    assert str(caught.value).startswith(f"{path}: is {kind.get(name, 'a device')}, not a regular")


def test_lines_come_before_the_file_is_read_to_its_end(tmp_path):
    path = write(tmp_path, b"one\n" * BLOCK_BYTES + b"\xff")
    assert next(iter(read_lines(path))) == "one"


@pytest.mark.parametrize("suffix", ["gz", "xz", "bz2"])
def test_a_damaged_archive_is_one_sentence(tmp_path, suffix):
    whole = COMPRESS[suffix](b"".join(b"line %d\n" % number for number in range(10_000)))
    torn = whole[:10] + bytes(byte ^ 255 for byte in whole[10:])
    with pytest.raises(UserError, match=rf"a\.{suffix}: .*get it again"):
        list(read_lines(write(tmp_path, torn, f"a.{suffix}")))


@pytest.mark.parametrize("suffix", COMPRESS)
def test_an_archive_of_several_streams_is_read_to_its_end(tmp_path, suffix):
    streams = [COMPRESS[suffix](b"line %d\n" % number) for number in range(3)]
    padding = b"" if suffix == "bz2" else bytes(8)
    path = write(tmp_path, padding.join(streams) + padding, f"a.{suffix}")
    assert list(read_lines(path)) == ["line 0", "line 1", "line 2"]


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("damage", ["header", "garbage"])
def test_what_follows_a_whole_stream_is_not_ignored(tmp_path, suffix, damage):
    first, second = COMPRESS[suffix](b"one\n"), bytearray(COMPRESS[suffix](b"two\n"))
    second[0] ^= 0xFF
    rest = bytes(second) if damage == "header" else b"<html>404</html>"
    with pytest.raises(UserError, match=rf"a\.{suffix}: .*get it again"):
        list(read_lines(write(tmp_path, first + rest, f"a.{suffix}")))


def test_zstandard_archives_read_like_plain_files_also_in_several_frames(tmp_path):
    zstd = pytest.importorskip("backports.zstd")
    content = zstd.compress(b"one\ntw") + zstd.compress(b"o\n")
    assert list(read_lines(write(tmp_path, content, "a.zst"))) == ["one", "two"]


def test_a_truncated_zstandard_archive_is_named(tmp_path):
    zstd = pytest.importorskip("backports.zstd")
    whole = zstd.compress(b"".join(b"line %d\n" % number for number in range(10_000)))
    for broken in (whole[: len(whole) // 2], b"not an archive"):
        with pytest.raises(UserError, match=r"a\.zst: .*get it again"):
            list(read_lines(write(tmp_path, broken, "a.zst")))


def test_without_the_package_for_zstandard_one_sentence_says_how_to_get_it(tmp_path, monkeypatch):
    for module in ("backports.zstd", "compression.zstd"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UserError, match=r"a\.zst: .*pip install .*\[zstd\]"):
        list(read_lines(write(tmp_path, b"", "a.zst")))


def test_open_files_give_lines_as_they_arrive():
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as file, os.fdopen(writing, "wb", buffering=0) as pipe:
        lines = decode_lines(file, "standard input")
        pipe.write(b" one\ntw")
        assert next(lines) == " one"
        pipe.write(b"o\xff\n")
        with pytest.raises(UserError, match="standard input, line 2: not UTF-8"):
            next(lines)


def test_an_open_file_without_a_line_end_is_not_read_for_ever():
    with (
        Path("/dev/zero").open("rb") as file,
        pytest.raises(UserError, match="line 1: longer than 10 MB"),
    ):
        next(decode_lines(file, "standard input"))


def test_a_text_on_several_lines_becomes_one_line_and_keeps_its_no_break_spaces():
    assert one_line(" one\r\n\ttwo  three\u00a0! \n") == "one two three\u00a0!"


@given(st.lists(st.text(st.characters(exclude_characters="\n\0", exclude_categories=["Cs"]))))
def test_any_lines_come_back_as_they_were(lines):
    content = "".join(f"{line}\n" for line in lines).encode()
    blocks = list(text._whole_lines(io.BytesIO(content)))
    decoded = list(text._decode(blocks, "a"))
    assert "\n".join(decoded) == "\n".join(lines).removeprefix("\ufeff")
    assert len(decoded) == len(lines)


def test_lines_are_counted_or_of_long_files_estimated(tmp_path):
    plain, packed, empty = (tmp_path / name for name in ("a.txt", "a.gz", "empty"))
    text = b"12345\n" * 3000 + b"no line feed at the end"
    plain.write_bytes(text)
    packed.write_bytes(gzip.compress(text))
    empty.touch()
    assert about_lines(plain) == about_lines(packed) == 3001
    assert about_lines(empty) == 0
    plain.write_bytes(b"12345\n" * 100_000)
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert about_lines(plain, most_bytes=1000) == pytest.approx(100_000, rel=0.01)
    assert about_lines(packed, most_bytes=1000) is None
    packed.write_bytes(b"not compressed")
    assert about_lines(packed) is None
