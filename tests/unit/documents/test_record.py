from math import isnan

from dragoman.documents.record import BestText


def test_a_text_alone_is_a_candidate_of_unknown_score():
    candidate = BestText("x")
    assert candidate.text == "x"
    assert isnan(candidate.score)
    assert candidate.alignment == ()
