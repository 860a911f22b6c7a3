from random import Random

import pytest
from unit.corpus.phrasebook.drawing import drawn

from dragoman.corpus.phrasebook import adverbials as adv
from dragoman.corpus.phrasebook import clauses
from dragoman.corpus.phrasebook import nouns as n
from dragoman.corpus.phrasebook import verbs as v
from dragoman.corpus.phrasebook.meaning import Clause, NounPhrase

(FARMER,) = n.pick("farmer")


@pytest.mark.parametrize(
    ("draw", "parts"),
    [
        (clauses.transitive, {"accusative"}),
        (clauses.ditransitive, {"accusative", "dative"}),
        (clauses.with_dative, {"dative"}),
        (clauses.motion, {"complement"}),
        (clauses.prepositional, {"complement"}),
    ],
)
def test_a_clause_has_the_objects_of_its_kind(draw, parts) -> None:
    for clause in drawn(draw):
        has = {part for part in ("accusative", "dative", "complement") if getattr(clause, part)}
        assert has == parts


def test_the_subject_that_is_settled_is_kept_and_suits_the_verb() -> None:
    farmer = NounPhrase(FARMER)
    rng = Random(7)
    for _ in range(200):
        frame = clauses.frame_for(rng, v.INTRANSITIVE, farmer)
        assert FARMER in frame.subjects
        assert clauses.activity(rng, farmer).subject is farmer


def test_times_suit_the_tense() -> None:
    past = {time for group in adv.PAST_TIMES for time in group}
    future = {time for group in adv.FUTURE_TIMES for time in group}
    for clause in drawn(lambda rng: clauses.timed(rng, clauses.activity(rng)), 500):
        if clause.time and clause.tense in ("past", "future"):
            assert clause.time in (past if clause.tense == "past" else future)
        if clause.tense == "perfect":
            assert clause.frequency is adv.ALREADY


def test_a_tense_is_one_that_the_english_words_show() -> None:
    """She reads, but whether "I read" is past or present nobody can tell."""
    rng = Random(7)
    tenses = {clauses.tense_for(rng, v.READ, n.SPEAKER, True) for _ in range(300)}
    assert "present" not in tenses
    assert "present" in {clauses.tense_for(rng, v.READ, n.SHE, True) for _ in range(300)}
    assert "progressive" not in {clauses.tense_for(rng, v.LOSE, n.SHE, True) for _ in range(300)}


def test_a_denial_leaves_out_what_only_a_contrast_would_deny() -> None:
    book = NounPhrase(n.pick("book")[0], True, "bare", number=adv.SMALL_NUMBERS[0])
    clause = Clause(n.SHE, v.READ, "perfect", accusative=book, manner=adv.SLOWLY)
    denied = clauses.deny(clause)
    assert denied.negated
    assert (denied.tense, denied.manner) == ("past", None)
    assert denied.accusative.number is None


def test_nobody_wants_what_only_happens_to_one() -> None:
    for clause in drawn(clauses.with_modal):
        assert clause.modal
        assert clause.verb not in v.INVOLUNTARY
        assert not clause.verb.stative
