import re

import pytest
from unit.corpus.phrasebook.drawing import drawn, said

from dragoman.corpus.phrasebook import nouns as n
from dragoman.corpus.phrasebook import relatives
from dragoman.corpus.phrasebook.meaning import Question


@pytest.mark.parametrize(
    ("construct", "word"),
    [
        (relatives.relative_subject, "who"),
        (relatives.relative_object, "who"),
        (relatives.relative_thing, "that"),
    ],
)
def test_a_relative_clause_is_set_off_by_a_comma_in_german_only(construct, word) -> None:
    for source, target in said(construct):
        assert f" {word} " in source, source
        assert re.search(r", (der|die|das|den|dem|denen) ", target), target


def test_the_pronoun_has_the_case_of_its_role() -> None:
    people = [m.subject for m in drawn(relatives.relative_subject, 400)]
    roles = {phrase.relative.role for phrase in people}
    assert roles == {"subject", "dative", "accusative"}
    assert {m.subject.relative.role for m in drawn(relatives.relative_thing)} == {"accusative"}


def test_who_knows_somebody_is_not_the_one_who_did_it() -> None:
    for meaning in drawn(relatives.relative_object, 400):
        clause = meaning.clause if isinstance(meaning, Question) else meaning
        assert clause.accusative.relative.clause.subject != clause.subject


def test_who_is_called_kin_has_the_sex_of_the_noun() -> None:
    for meaning in drawn(relatives.relative_subject, 400):
        if hasattr(meaning.complement, "noun"):
            assert meaning.complement.noun.gender == meaning.subject.noun.gender
            assert meaning.complement.noun in n.KIN + n.FRIENDS
