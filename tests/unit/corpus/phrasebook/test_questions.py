import pytest
from unit.corpus.phrasebook.drawing import drawn, said

from dragoman.corpus.phrasebook import nouns as n
from dragoman.corpus.phrasebook import questions


@pytest.mark.parametrize(
    ("construct", "first_words"),
    [
        (questions.question_for_subject, {("Who", "Wer")}),
        (
            questions.question_for_object,
            {("What", "Was"), ("Who", "Wen"), ("Who", "Wem"), ("How", "Wie")},
        ),
        (
            questions.question_for_circumstance,
            {("When", "Wann"), ("Why", "Warum"), ("Where", "Wo"), ("Where", "Wohin")},
        ),
        (questions.question_for_measure, {("How", "Wie")}),
    ],
)
def test_both_languages_ask_for_the_same(construct, first_words) -> None:
    asked = said(construct, 400)
    assert {(source.split()[0], target.split()[0]) for source, target in asked} == first_words
    assert {mark for pair in asked for mark in (pair[0][-1], pair[1][-1])} == {"?"}


def test_a_question_for_yes_or_no_begins_with_the_verb() -> None:
    opening = {source.split()[0] for source, _ in said(questions.yes_no_question, 400)}
    auxiliaries = "am are is was were do does did have has will can could must may should would"
    assert {word.lower() for word in opening} <= {*auxiliaries.split()}


def test_nobody_asks_about_himself() -> None:
    for construct in (questions.question_for_object, questions.question_for_measure):
        assert all(meaning.clause.subject not in (n.SPEAKER, n.WE) for meaning in drawn(construct))


def test_what_is_asked_for_is_missing_from_the_clause() -> None:
    for meaning in drawn(questions.question_for_object):
        assert meaning.clause.accusative is meaning.clause.dative is None
    for meaning in drawn(questions.question_for_circumstance):
        assert not (meaning.asked.english == "where" and meaning.clause.place)
