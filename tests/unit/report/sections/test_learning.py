import pytest
from unit.report.fake_run import evaluated, started, step
from unit.report.rendered import report

from dragoman.report.sections import learning


def learned(run, *evaluations):
    events = [event for e in evaluations for event in ((e.step, step(e.step)), (e.step + 0.5, e))]
    return report(run.with_events([(0.0, started()), *events]))


def test_losses_have_95_percent_intervals_where_their_errors_are_known(empty_run):
    found = learned(empty_run, evaluated(1, validation_loss_error=0.1))
    _, validation = learning.validation_loss(found).lines
    known, unknown = learning.validation_and_training_sample_loss(found).lines

    assert validation.lows == known.lows == [pytest.approx(3.0 - 1.96 * 0.1)]
    assert validation.highs == [pytest.approx(3.0 + 1.96 * 0.1)]
    assert unknown.lows == ()


def test_the_first_batches_do_not_flatten_the_validation_loss(empty_run):
    found = learned(empty_run, evaluated(1, validation_loss=4.0), evaluated(2, validation_loss=2.0))

    assert learning.validation_loss(found).value_range == (1.5, 5.0)


def test_bleu_leaves_out_evaluations_without_it(empty_run):
    found = learned(empty_run, evaluated(1, bleu=None), evaluated(2, bleu_low=18.0, bleu_high=22.0))
    (line,) = learning.bleu(found).lines

    assert (line.at, line.values, line.lows, line.highs) == ([2], [20.0], [18.0], [22.0])


def test_a_run_without_an_evaluation_still_shows_its_batches(empty_run):
    found = report(empty_run.with_events([(0.0, started()), (1.0, step(1))]))

    assert learning.validation_loss(found) is None
    assert learning.training_loss(found).lines[0].values == [9.0]
    assert [line.name for line in learning.learning_rate(found).lines] == ["as run", "as set"]
