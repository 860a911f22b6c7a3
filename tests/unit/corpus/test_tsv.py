import gzip

import pytest

from dragoman.corpus.tsv import read_tsv
from dragoman.errors import UserError


def write(folder, content):
    path = folder / "a.tsv"
    path.write_bytes(content)
    return path


def test_columns_count_from_one_and_may_stand_in_any_order(tmp_path):
    path = write(tmp_path, b"0.9\teins\tone\n0.8\tzwei\ttwo\tmore\r\n")
    assert list(read_tsv(path, 3, 2)) == [("one", "eins"), ("two", "zwei")]


def test_quotation_marks_are_characters_like_others(tmp_path):
    path = write(tmp_path, b'"one\teins"\n"two""\tzwei\n')
    assert list(read_tsv(path, 1, 2)) == [('"one', 'eins"'), ('"two""', "zwei")]


def test_empty_columns_at_the_ends_are_columns(tmp_path):
    path = write(tmp_path, b"\teins\none\t\n\t\n")
    assert list(read_tsv(path, 1, 2)) == [("", "eins"), ("one", ""), ("", "")]


def test_white_space_round_a_text_is_removed(tmp_path):
    assert list(read_tsv(write(tmp_path, b" one \t eins \r\n"), 1, 2)) == [("one", "eins")]


def test_compressed_tables_read_like_plain_ones(tmp_path):
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress(b"one\teins\n"))
    assert list(read_tsv(path, 1, 2)) == [("one", "eins")]


@pytest.mark.parametrize("row", [b"two", b""])
def test_a_row_with_too_few_columns_is_refused_with_file_and_line(tmp_path, row):
    path = write(tmp_path, b"one\teins\n" + row + b"\nthree\tdrei\n")
    with pytest.raises(UserError, match=r"a\.tsv, line 2: column 2 .* 1"):
        list(read_tsv(path, 1, 2))


def test_commas_are_told_from_tabs(tmp_path):
    with pytest.raises(UserError, match=r"a\.tsv, line 1: column 2 .* 1; separate columns by tabs"):
        list(read_tsv(write(tmp_path, b"one,eins\n"), 1, 2))


def test_columns_before_the_first_are_refused(tmp_path):
    path = write(tmp_path, b"one\teins\n")
    with pytest.raises(UserError, match=r"a\.tsv: columns 0 and 1 .* count from 1"):
        list(read_tsv(path, 0, 1))


def test_bytes_that_are_not_utf8_are_refused_with_file_and_line(tmp_path):
    path = write(tmp_path, b"one\teins\nfive\tf\xfcnf\n")
    with pytest.raises(UserError, match=r"a\.tsv, line 2: not UTF-8"):
        list(read_tsv(path, 1, 2))
