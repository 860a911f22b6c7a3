import re

import pytest
from unit.corpus.phrasebook.drawing import drawn, said

from dragoman.corpus.phrasebook import nouns as n
from dragoman.corpus.phrasebook import statements
from dragoman.corpus.phrasebook.meaning import Clause, NounPhrase, Question


@pytest.mark.parametrize(
    ("construct", "english", "german"),
    [
        (statements.duration, r" (has|have) been .* for ", r" seit "),
        (statements.comparison, r"(er|more \w+|better) than ", r"\w+er als "),
        (statements.existence, r"(?i)there (is|are)|is there", r"(?i)gibt es|es gibt"),
        (statements.possession, r"belong", r"(?i)gehör"),
        (statements.age, r" years old\.$", r" Jahre alt\.$"),
        (statements.price, r" costs? .* euros\.$", r" koste[nt] .* Euro\.$"),
        (statements.birthday, r"birthday is on the ", r"Geburtstag .*ist am "),
    ],
)
def test_both_languages_say_what_the_construction_is_for(construct, english, german) -> None:
    for source, target in said(construct):
        assert re.search(english, source), source
        assert re.search(german, target), target


def test_a_denial_denies_in_both_languages_or_in_none() -> None:
    pairs = said(statements.denial)
    for source, target in pairs:
        says_no = bool(re.search(r"\b(not|no|never)\b", source))
        assert says_no == bool(re.search(r"\b(nicht|kein\w*|nie)\b", target, re.I)), (
            source,
            target,
        )
    assert sum(" not " in source for source, _ in pairs) > 100


def test_the_same_preposition_has_the_dative_for_position_and_the_accusative_for_placement() -> (
    None
):
    def cases(construct):
        clauses = [m.clause if isinstance(m, Question) else m for m in drawn(construct)]
        return {clause.complement.case for clause in clauses if clause.complement}

    assert cases(statements.position) == {"dative"}
    assert cases(statements.placement) == {"accusative"}


def test_children_and_grandparents_have_likely_ages() -> None:
    ages = {noun: set() for noun in n.pick("daughter, grandmother")}
    tens = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
    for meaning in drawn(statements.age, 5000):
        if isinstance(meaning.subject, NounPhrase) and meaning.subject.noun in ages:
            ages[meaning.subject.noun].add(meaning.complement.english)
    daughter, grandmother = ages.values()
    assert daughter
    assert grandmother
    assert not any(age.startswith(tens) for age in daughter)
    assert all(age.startswith(tens[3:]) for age in grandmother)


def test_a_profession_has_the_sex_of_its_person() -> None:
    for meaning in drawn(statements.profession):
        if isinstance(meaning, Clause) and isinstance(meaning.subject, NounPhrase):
            assert meaning.subject.noun.gender == meaning.complement.noun.gender
