import pytest

from dragoman.documents.form import Form, check_form, kind_of, read_records
from dragoman.documents.record import BestText, TranslatedSentence, TranslatedText
from dragoman.errors import UserError

TRANSLATED = TranslatedText("Ja.", (TranslatedSentence("Yes.", [BestText("Ja.", -0.5)]),))


@pytest.mark.parametrize(
    ("form", "name", "lines", "expected"),
    [
        (Form(), "a.txt", ["Yes."], ["Ja."]),
        (Form(lines="wrapped"), "a.txt", ["Yes.", "Yes."], ["Ja."]),
        (Form(detailed=True), "a.txt", ["Yes."], ["1\t1\t1\t-0.5000\tJa."]),
        (Form(column="1"), "a.tsv", ["Yes.,x"], ["Yes.,x\tJa."]),
        (Form(column="1"), "a.csv.gz", ["Yes.,x"], ["Yes.,x,Ja."]),
        (Form(column="en"), "a.tsv", ["en", "Yes."], ["en\tde", "Yes.\tJa."]),
        (Form(column="en", output_key="x"), "a.tsv", ["en"], ["en\tx"]),
        (Form(key="a"), "a.jsonl", ['{"a": ""}'], ['{"a": "", "translation": "Ja."}']),
        (Form(key="a", output_key="b"), "-", ['{"a": ""}'], ['{"a": "", "b": "Ja."}']),
    ],
)
def test_a_document_is_read_and_written_in_its_form(form, name, lines, expected):
    check_form(form, name)
    records = read_records(lines, name, form, "de")
    assert [record.write(TRANSLATED) for record in records] == expected


@pytest.mark.parametrize(
    ("form", "name", "fact"),
    [
        (Form(column="1", key="a"), "a.txt", "--key"),
        (Form(column="1", detailed=True), "a.tsv", "--n-best"),
        (Form(output_key="x"), "a.txt", "--output-key"),
        (Form(key="a", output_key="sentences.b", detailed=True), "a.txt", "--output-key"),
        (Form(), "a.tsv", "--column"),
        (Form(), "a.csv.xz", "--column"),
        (Form(), "a.jsonl", "--key"),
    ],
)
def test_what_makes_no_sense_together_is_refused(form, name, fact):
    with pytest.raises(UserError, match=fact):
        check_form(form, name)


def test_the_kind_of_a_file_is_its_ending_before_the_compression():
    assert [kind_of(name) for name in ("a.CSV.gz", "a.tsv", "a.gz", "a", "a.b/c")] == [
        *(".csv", ".tsv", "", "", "")
    ]
