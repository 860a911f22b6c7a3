from dragoman.corpus.phrasebook import nouns as n
from dragoman.corpus.phrasebook import verbs as v
from dragoman.corpus.phrasebook.meaning import Clause, NounPhrase, Question, combination
from dragoman.corpus.phrasebook.words import Phrase

(BOOK,), (LETTER,) = n.pick("book"), n.pick("letter")
READS = Clause(n.SHE, v.READ, "progressive", accusative=NounPhrase(BOOK, False, "a"))


def test_sentences_that_differ_in_grammar_only_share_their_combination() -> None:
    grammar = [
        READS._replace(tense="past", time=Phrase("yesterday", "gestern")),
        READS._replace(subject=n.WE),
        READS._replace(negated=True),
        READS._replace(accusative=NounPhrase(BOOK, True, "the", n.NEW)),
    ]
    assert {combination(clause) for clause in grammar} == {combination(READS)}


def test_other_words_or_other_roles_make_another_combination() -> None:
    anna, paul = n.NAMES[0], n.NAMES[5]
    others = [
        READS._replace(verb=v.WRITE),
        READS._replace(accusative=NounPhrase(LETTER, False, "a")),
        READS._replace(subject=anna),
        READS._replace(accusative=NounPhrase(BOOK, owner=anna)),
        READS._replace(subject=NounPhrase(n.pick("man")[0]), accusative=NounPhrase(BOOK)),
        Question(READS),
        Clause(anna, v.SEE, accusative=paul),
        Clause(paul, v.SEE, accusative=anna),
    ]
    assert len({combination(meaning) for meaning in [READS, *others]}) == len(others) + 1
