from pathlib import Path

import numpy as np
import pytest
from unit.diagnosis.learning_run import figure, learned
from unit.report.fake_run import WALL_AT, FakeRun, evaluated, started, step

from dragoman.diagnosis.answers.quality import answer
from dragoman.diagnosis.run.facts import read_facts
from dragoman.rundir import write_json

TEST_SCORES = {
    "split": "test",
    "steps": [2, 4],
    "sentences": 3003,
    "beam": 4,
    "bleu": 39.04,
    "chrf": 61.0,
    "bleu_signature": "nrefs:1|case:mixed",
    "chrf_signature": "nrefs:1",
}


@pytest.fixture
def fake(tmp_path) -> FakeRun:
    return FakeRun(tmp_path / "run")


def asked(fake: FakeRun):
    facts = read_facts(fake.directory, read_at=WALL_AT)
    return answer(facts)


def with_evaluations(fake: FakeRun, *evaluations) -> FakeRun:
    events = [(float(n), step(n)) for n in range(1, 5)]
    events += [(e.step + 0.5, e) for e in evaluations]
    return fake.with_events([(0.0, started()), *sorted(events, key=lambda event: event[0])])


def test_nothing_translated_nothing_said(fake):
    assert asked(fake) is None
    assert asked(with_evaluations(fake, evaluated(2, bleu=None))) is None


def test_the_test_set_counts_and_has_its_interval(fake):
    scores = TEST_SCORES | {"bleu_low": 38.1, "bleu_high": 39.9}
    write_json(fake.directory.evaluation("test"), scores)
    found = asked(with_evaluations(fake, evaluated(2, bleu=30.0)))
    assert (found.verdict, found.confidence) == ("39.0 BLEU (38.1 to 39.9)", "high")
    scored = figure(found, "BLEU on test")
    assert (scored.value, scored.low, scored.high) == (39.04, 38.1, 39.9)
    assert figure(found, "chrF on test").value == 61.0
    assert figure(found, "best BLEU on validation").value == 30.0
    for fact in ("3,003", "beam 4", "2 + 4"):
        assert fact in found.sentence
    assert found.advice_text == ""


def test_of_several_test_sets_each_has_its_score_and_the_first_of_the_recipe_is_named(fake):
    for split, place, bleu in (("news", 2, 20.0), ("talks", 1, 30.0)):
        scores = TEST_SCORES | {"split": split, "test_place": place, "bleu": bleu}
        write_json(fake.directory.evaluation(split), scores)
    found = asked(fake)
    assert found.verdict == "30.0 BLEU on talks"
    assert "on talks" in found.plain
    assert (figure(found, "BLEU on talks").value, figure(found, "BLEU on news").value) == (30, 20)
    assert found.sentence.index("On talks") < found.sentence.index("On news")


def test_records_without_intervals_are_less_sure(fake):
    write_json(fake.directory.evaluation("test"), TEST_SCORES)
    found = asked(fake)
    assert (found.verdict, found.confidence) == ("39.0 BLEU", "low")


@pytest.mark.parametrize(
    ("bleu", "p", "words"),
    [
        (31.0, 0.012, "1.0 BLEU above the best before it, of step 2: more than"),
        (30.1, 0.6, "0.1 BLEU above the best before it, of step 2: no more than"),
        (28.0, 0.001, "2.0 BLEU below the best before it, of step 2: more than"),
    ],
)
def test_significance_against_the_previous_best(fake, bleu, p, words):
    run = with_evaluations(
        fake,
        evaluated(2, bleu=30.0, bleu_low=29.0, bleu_high=31.0),
        evaluated(4, bleu=bleu, bleu_low=29.5, bleu_high=32.0, compared_step=2, bleu_gain_p=p),
    )
    found = asked(run)
    assert words in found.sentence
    gain = figure(found, "BLEU against the best before")
    assert gain.value == pytest.approx(bleu - 30.0)
    assert gain.note == f"step 2, p = {p:.3f}"
    assert not found.advice  # the run has not ended


def test_a_comparison_with_a_lost_evaluation_is_left_out(fake):
    later = evaluated(4, bleu=31.0, compared_step=3, bleu_gain_p=0.01)
    names = [each.name for each in asked(with_evaluations(fake, later)).evidence]
    assert names == ["best BLEU on validation"]


LEVEL = 1.5 + np.exp(-np.arange(1, 26) / 2)


def finished(root, bleu, losses=LEVEL, gap=0.1, **more):
    scores = np.full(25, bleu)
    run = learned(root / "run", losses, losses - gap, scores, bleu_error=0.5, **more)
    return run.asked(answer)


def test_a_leak_is_told_first_with_how_to_find_it(tmp_path):
    found = finished(tmp_path, 97.0, losses=LEVEL - 1.35, gap=0.0)
    assert found.confidence == "low"
    assert found.sentence.startswith("Too good to be true: 97.0 BLEU")
    [command] = [advice.command for advice in found.advice]
    assert command == f"grep -cxFf {Path.cwd()}/valid.en {Path.cwd()}/train.en"
    assert "too good to be true" in found.plain


def test_a_leak_that_was_let_in_is_left_out_of_the_next_run(tmp_path):
    settings = ["cleaning.drop_leaks=false"]
    found = finished(tmp_path, 97.0, losses=LEVEL - 1.35, gap=0.0, settings=settings)
    assert "cleaning.drop_leaks=true" in found.advice[1].command


def test_the_test_set_is_scored_when_the_run_has_ended_well(tmp_path):
    kept = {"checkpoints": [25_000], "best": 25_000}
    found = finished(tmp_path, 27.0, **kept)
    folder = tmp_path / "run"
    assert [advice.command for advice in found.advice] == [f"dragoman evaluate {folder}"]


@pytest.mark.parametrize(
    "more",
    [
        {"ended": "", "checkpoints": [25_000], "best": 25_000},  # still running
        {"checkpoints": []},  # nothing to score
        {"losses": LEVEL - np.arange(25) / 50, "checkpoints": [25_000], "best": 25_000},
        {"settings": {"data.test": []}, "checkpoints": [25_000], "best": 25_000},
    ],
)
def test_the_test_set_is_not_scored_before(tmp_path, more):
    assert not finished(tmp_path, 27.0, **more).advice


def test_a_known_test_set_has_a_scale_of_known_systems(tmp_path):
    sacrebleu = [{"kind": "sacrebleu", "name": "wmt13"}]
    found = finished(tmp_path, 25.6, settings={"data.validation": sacrebleu})
    assert figure(found, "BLEU of Transformer base").value == 25.8
    assert "about as good as Transformer base" in found.plain


def test_another_test_set_has_a_rough_scale(tmp_path):
    found = finished(tmp_path, 11.0)
    assert "the gist is hard to get" in found.plain
    assert "only scores on the same test set can be compared" in found.sentence
