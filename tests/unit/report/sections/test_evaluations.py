import pytest
from unit.report.fake_run import evaluated, started, step
from unit.report.rendered import report

from dragoman.report.sections import evaluations
from dragoman.rundir import write_json


def table_of(run, found):
    events = [event for e in found for event in ((e.step, step(e.step)), (e.step + 0.5, e))]
    run.with_events([(0.0, started()), *events])
    return next(iter(evaluations.evaluations(report(run))))


def test_a_long_run_shows_the_last_the_best_and_the_lowest_loss(empty_run):
    found = [evaluated(n, bleu=30.0 if n == 7 else 20.0) for n in range(1, 101)]
    found[57] = evaluated(58, validation_loss=1.0)
    shown = [row[0] for row in table_of(empty_run, found).rows]

    assert {"7", "58", "100"} <= set(shown)
    assert len(shown) <= evaluations.ROWS_SHOWN + 2


def test_a_loss_has_its_standard_error_where_it_is_known(empty_run):
    found = evaluated(1, validation_loss_error=0.02)
    row = table_of(empty_run, [found]).rows[0]

    assert row[1:3] == ["3.000 ± 0.020", "2.500"]


@pytest.mark.parametrize("translation", ["Hallo.", "Tag."])
def test_translations_that_are_the_reference_are_counted(empty_run, translation):
    sample = {"source": "Hello.", "translation": translation, "reference": "Hallo."}
    run = empty_run.with_events([(0.0, started()), (1.0, evaluated(1, samples=[sample] * 12))])
    (shown,) = evaluations.translations(report(run))

    assert len(shown.samples) == evaluations.SAMPLES_SHOWN
    assert f"{10 if translation == 'Hallo.' else 0} of the 10" in shown.title


def test_every_test_set_is_told_with_its_interval(empty_run):
    for split, place, bleu in (("news", 1, 20.0), ("talks", 2, 30.0)):
        scored = {"split": split, "test_place": place, "steps": [5], "sentences": 100, "beam": 4}
        scored |= {"bleu": bleu, "bleu_low": bleu - 1, "bleu_high": bleu + 1, "chrf": 50.0}
        scored |= {"bleu_signature": "nrefs:1", "chrf_signature": "nrefs:1"}
        write_json(empty_run.directory.evaluation(split), scored)
    words = evaluations.quality_in_words(report(empty_run))

    assert "On news, the checkpoint of step 5 has BLEU 20.0 (19.0 to 21.0)" in words
    assert "On talks, the checkpoint of step 5 has BLEU 30.0 (29.0 to 31.0)" in words
