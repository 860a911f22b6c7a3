import json

from dragoman.documents.candidates import candidate_rows, json_line, pharaoh, sentence_objects
from dragoman.documents.record import BestText, TranslatedSentence, TranslatedText

TRANSLATED = TranslatedText(
    "Ja.  Nein.",
    (
        TranslatedSentence(
            "Yes.", [BestText("Ja.", -0.12345, ((0, 0), (1, 2))), BestText("Doch.", -1.0)]
        ),
        TranslatedSentence("No.", [BestText("Ne\tin.", -0.5)]),
    ),
)


def test_rows_have_line_sentence_rank_score_and_text():
    assert candidate_rows(TRANSLATED, 7, aligned=False).split("\n") == [
        "7\t1\t1\t-0.1235\tJa.",
        "7\t1\t2\t-1.0000\tDoch.",
        "7\t2\t1\t-0.5000\tNe in.",
    ]


def test_alignments_are_a_further_column():
    rows = candidate_rows(TRANSLATED, 7, aligned=True).split("\n")
    assert [row.split("\t")[5] for row in rows] == ["0-0 1-2", "", ""]
    assert pharaoh([]) == ""


def test_a_line_without_sentences_has_a_row_too():
    nothing = TranslatedText("", ())
    assert candidate_rows(nothing, 3, aligned=False) == "3\t1\t1\t0.0000\t"
    assert candidate_rows(nothing, 3, aligned=True).count("\t") == 5


def test_objects_hold_sources_and_candidates():
    first, second = sentence_objects(TRANSLATED, aligned=True)
    assert first["source"] == "Yes."
    assert first["candidates"][0] == {"text": "Ja.", "score": -0.1235, "alignment": "0-0 1-2"}
    assert "alignment" not in sentence_objects(TRANSLATED, aligned=False)[1]["candidates"][0]
    assert second["candidates"][0]["score"] == -0.5


def test_json_is_one_line_that_utf8_can_hold():
    assert json_line({"ä": "\n"}) == '{"ä": "\\n"}'
    half = "\ud83d"
    assert json.loads(json_line(half).encode()) == half
