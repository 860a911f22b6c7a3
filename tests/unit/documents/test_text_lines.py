import json

from dragoman.documents.record import BestText, TranslatedSentence, TranslatedText
from dragoman.documents.text_lines import read_detailed_lines, read_text_lines

TRANSLATED = TranslatedText(" Ja.", (TranslatedSentence("Yes.", [BestText("Ja.", -0.5)]),))


def test_each_line_is_a_record_and_is_written_as_its_translation():
    records = list(read_text_lines([" Yes.", "", "No."]))
    assert [record.text for record in records] == [" Yes.", "", "No."]
    assert records[0].write(TRANSLATED) == " Ja."


def test_wrapped_lines_that_stand_together_are_one_record():
    lines = ["One", "two", "", "three"]
    assert [record.text for record in read_text_lines(lines, wrapped=True)] == [
        "One\ntwo",
        "",
        "three",
    ]


def test_details_have_the_number_of_the_line():
    rows = read_detailed_lines(["x", "y"], as_json=False, aligned=False)
    assert [record.write(TRANSLATED) for record in rows] == [
        "1\t1\t1\t-0.5000\tJa.",
        "2\t1\t1\t-0.5000\tJa.",
    ]
    lines = ["One", "two", "", "three"]
    wrapped = read_detailed_lines(lines, wrapped=True, as_json=True, aligned=True)
    objects = [json.loads(record.write(TRANSLATED)) for record in wrapped]
    assert [content["line"] for content in objects] == [1, 3, 4]
    assert objects[0] == {
        "line": 1,
        "translation": " Ja.",
        "sentences": [
            {"source": "Yes.", "candidates": [{"text": "Ja.", "score": -0.5, "alignment": ""}]}
        ],
    }
