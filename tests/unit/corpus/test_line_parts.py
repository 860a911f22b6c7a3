import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.corpus import line_parts as module
from dragoman.corpus.line_parts import line_parts
from dragoman.corpus.text import read_raw_lines
from dragoman.errors import UserError

PLENTY = 1 << 40


def never(places, first_line):
    raise AssertionError("they fit")


def two(before):
    return 2


def write(folder, *contents):
    files = [folder / f"file-{number}" for number in range(len(contents))]
    for path, content in zip(files, contents, strict=True):
        path.write_bytes(content)
    return files


@given(
    lines=st.lists(st.text(st.characters(exclude_characters="\n\0\ufeff"), max_size=20)),
    each=st.integers(1, 7),
    block=st.integers(1, 50),
    ends=st.booleans(),
)
def test_parts_are_whole_lines_and_together_the_file(tmp_path_factory, lines, each, block, ends):
    folder = tmp_path_factory.mktemp("lines")
    content = "\n".join(lines).encode() + (b"\n" if ends and lines else b"")
    (path,) = write(folder, content)
    expected = list(read_raw_lines(path))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "BLOCK_BYTES", block)
        parts = list(line_parts([path], lambda before: each, PLENTY, never))
    texts = [content[begin:end] for part in parts for begin, end in part.ranges]
    assert b"".join(texts) == content
    assert [part.lines for part in parts[:-1]] == [each] * len(parts[:-1])
    assert [part.first_line for part in parts] == list(range(1, len(expected) + 1, each))
    for part, text in zip(parts, texts, strict=True):
        of_part = text.decode().removesuffix("\n").split("\n")
        assert of_part == expected[part.first_line - 1 :][: part.lines]


def test_files_are_cut_at_the_same_lines(tmp_path):
    files = write(tmp_path, b"a\nbb\nccc\n", b"1\n\n333")
    first, second = line_parts(files, two, PLENTY, never)
    assert first == (1, 2, [(0, 5), (0, 3)])
    assert second == (3, 1, [(5, 9), (3, 6)])


def test_a_file_that_ends_early_is_named_with_its_last_line(tmp_path):
    files = write(tmp_path, b"a\n" * 7, b"1\n" * 5)
    with pytest.raises(UserError, match=r"file-1 ends after line 5, but .*file-0 continues"):
        list(line_parts(files, two, PLENTY, never))


def test_parts_of_too_many_bytes_have_as_many_lines_as_fit(tmp_path):
    (path,) = write(tmp_path, b"a\n" * 4 + b"b" * 100 + b"\n" + b"c\n" * 4)
    asked = []

    def one(places, first_line):
        asked.append((list(places), first_line))
        return 1

    parts = list(line_parts([path], lambda before: 4, 50, one))
    assert [part.lines for part in parts] == [4, 1, 4]
    assert asked == [([8], 5)]


def test_what_is_far_behind_a_long_line_is_not_read_for_it(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_BYTES", 10)
    (path,) = write(tmp_path, b"a" * 100 + b"\n" + b"b\n" * 1000)
    with path.open("rb") as file:
        assert module._skip(file, 0, 500, most_bytes=20) == (30, 1)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match="nowhere: no such file"):
        list(line_parts([tmp_path / "nowhere"], two, PLENTY, never))
