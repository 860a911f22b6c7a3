import csv

import pytest

from dragoman.documents.record import TranslatedText
from dragoman.documents.table import read_table
from dragoman.errors import UserError


def written(lines, column, with_commas=False):
    """The rows that are written if each text is translated to upper case."""
    records = read_table(lines, "in.tsv", column, "de", with_commas=with_commas)
    return [record.write(TranslatedText((record.text or "").upper(), ())) for record in records]


def test_a_column_by_number_has_no_heading():
    assert written(["a\tb", "c\td"], "2") == ["a\tb\tB", "c\td\tD"]


def test_a_cell_may_be_longer_than_the_csv_module_expects():
    longest = "a" * 131_073
    assert written([f"{longest},b"], "2", with_commas=True) == [f"{longest},b,B"]


def test_a_column_by_name_has_a_heading_and_so_has_the_translation():
    assert written(["id\ten", "1\thello", "2\t"], "en") == [
        "id\ten\tde",
        "1\thello\tHELLO",
        "2\t\t",
    ]


def test_blank_rows_and_carriage_returns_stay():
    assert written(["en\tx\r", "a\tb\r", " \r", "", "\t", "c\td"], "en") == [
        "en\tx\tde\r",
        "a\tb\tA\r",
        " \r",
        "",
        "\t\t",
        "c\td\tC",
    ]


def test_quotation_marks_are_characters_with_tabs_and_quote_with_commas():
    assert written(['"a\tb'], "1") == ['"a\tb\t"A']
    rows = written(
        ["id,en\r", '1,"one, ""two""\r', 'three"\r', "\r", "2,x\r"], "en", with_commas=True
    )
    text = "".join(f"{row}\n" for row in rows)
    assert list(csv.reader(text.splitlines(keepends=True))) == [
        ["id", "en", "de"],
        ["1", 'one, "two"\r\nthree', 'ONE, "TWO"\r\nTHREE'],
        [],
        ["2", "x", "X"],
    ]
    assert all(row.endswith("\r") for row in rows)


@pytest.mark.parametrize(
    ("lines", "column", "fact"),
    [
        (["a\tb", "c"], "1", "line 2"),
        (["a\tb", "c\td\te"], "1", "line 2"),
        (["a\tb"], "3", "line 1"),
        (["a\tb"], "0", "column 0"),
        (["a\tb"], "en", "'en'"),
        (["en\ten"], "en", "several"),
        (["en\tde"], "en", "--output-key"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_with_its_line(lines, column, fact):
    with pytest.raises(UserError, match=r"in\.tsv") as refused:
        written(lines, column)
    assert fact in str(refused.value)


@pytest.mark.parametrize("broken", ['b,"c', 'b,"c"d', 'b,"' + "x" * 200_000])
def test_a_broken_row_with_commas_is_named_by_its_first_line(broken):
    with pytest.raises(UserError, match=r"in\.tsv, line 2: not a row of CSV"):
        written(["a,b", broken, "c,d"], "1", with_commas=True)
