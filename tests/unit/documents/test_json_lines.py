import json

import pytest

from dragoman.documents.json_lines import read_json_lines
from dragoman.documents.record import BestText, TranslatedSentence, TranslatedText
from dragoman.errors import UserError

TRANSLATED = TranslatedText("Ja.\nUnd.", (TranslatedSentence("Yes.", [BestText("Ja.", -0.5)]),))


def read(*lines, key="text", output_key="translation", **more):
    return list(read_json_lines(lines, "in.jsonl", key, output_key, **more))


def test_objects_keep_what_they_have_and_get_a_translation():
    first, blank, last = read('{"id": 1.0, "text": "Yes.\\nAnd."}', " ", '{"text": "", "ä": null}')
    assert (first.text, blank.text, last.text) == ("Yes.\nAnd.", None, "")
    assert json.loads(first.write(TRANSLATED)) == {
        "id": 1.0,
        "text": "Yes.\nAnd.",
        "translation": "Ja.\nUnd.",
    }
    assert blank.write(TranslatedText("", ())) == ""
    assert last.write(TranslatedText("", ())) == '{"text": "", "ä": null, "translation": ""}'


def test_keys_may_be_nested_on_both_sides():
    (record,) = read('{"t": {"en": "Yes."}}', key="t.en", output_key="t.de")
    assert json.loads(record.write(TRANSLATED))["t"] == {"en": "Yes.", "de": "Ja.\nUnd."}
    (record,) = read('{"t": {"en": "Yes."}}', key="t.en", output_key="a.b")
    assert json.loads(record.write(TRANSLATED))["a"] == {"b": "Ja.\nUnd."}


def test_details_are_the_sentences_of_the_text():
    (record,) = read('{"text": "Yes."}', detailed=True, aligned=False)
    assert json.loads(record.write(TRANSLATED))["sentences"] == [
        {"source": "Yes.", "candidates": [{"text": "Ja.", "score": -0.5}]}
    ]


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"text": "\\ud83d"}', "key text"),
        ('{"text": 5}', "5"),
        ('{"text": null}', "null"),
        ('{"text": {"en": "x"}}', "key text"),
        ('["text"]', "no key text"),
        ("{}", "no key text"),
        ('{"text": "x", "translation": "y"}', "--output-key"),
        ('{"text": "x", "sentences": "y"}', "sentences"),
    ],
)
def test_a_wrong_line_is_named(line, fact):
    with pytest.raises(UserError, match=r"in\.jsonl, line 2: ") as refused:
        read('{"text": "fine"}', line, detailed=True)
    assert fact in str(refused.value)
    assert len(str(refused.value)) < 250


def test_a_parent_of_the_output_that_is_no_object_is_named():
    with pytest.raises(UserError, match=r"line 1: .*key a "):
        read('{"text": "x", "a": 5}', output_key="a.b")
