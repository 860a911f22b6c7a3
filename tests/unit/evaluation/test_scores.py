import pytest
from pydantic import ValidationError

from dragoman.evaluation.scores import (
    ScoredSplit,
    all_scores,
    read_scores,
    score_files,
    write_scores,
)
from dragoman.rundir import RunDir, read_json, read_sentences, write_json

SCORED = ScoredSplit(
    split="test",
    steps=[300],
    sentences=2,
    beam=4,
    length_penalty=0.6,
    bleu=31.5,
    chrf=55.0,
    bleu_signature="nrefs:1",
    chrf_signature="nrefs:1",
    bleu_low=30.0,
    bleu_high=33.0,
    samples=[{"source": "one", "translation": "eins", "reference": "eins"}],
)


@pytest.fixture
def run(tmp_path):
    return RunDir(tmp_path)


def test_what_is_written_is_read_again_with_both_texts(run):
    write_scores(run, SCORED, ["eins", "zwo"], ["eins", "zwei"])
    assert read_scores(run, "test") == SCORED
    assert read_sentences(run.evaluation_text("test", "translations")) == ["eins", "zwo"]
    assert read_sentences(run.evaluation_text("test", "references")) == ["eins", "zwei"]


def test_scores_from_before_there_were_intervals_are_read(run):
    write_scores(run, SCORED, [], [])
    content = read_json(run.evaluation("test"))
    for key in ("bleu_low", "bleu_high", "length_penalty", "samples"):
        del content[key]
    write_json(run.evaluation("test"), content)
    assert read_scores(run, "test").bleu_low is None


def test_something_else_is_refused(run):
    write_json(run.evaluation("test"), {"split": "test"})
    with pytest.raises(ValidationError):
        read_scores(run, "test")


def test_test_sets_come_first_in_the_order_of_the_recipe(run):
    places = {"validation": None, "test": None, "another": None, "b": 1, "a": 2}
    for split, place in places.items():
        scored = SCORED.model_copy(update={"split": split, "test_place": place})
        write_scores(run, scored, [], [])
    assert len(score_files(run)) == 5
    assert [scored.split for scored in all_scores(run)] == [
        *("b", "a", "test", "another", "validation")
    ]


def test_scores_that_cannot_be_read_are_left_out(run):
    write_scores(run, SCORED, [], [])
    write_json(run.evaluation("odd"), {"split": "odd"})
    run.evaluation("torn").write_text("{", encoding="utf-8")
    assert all_scores(run) == [SCORED]
