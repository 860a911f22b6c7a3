"""Plots of what the model learned: losses and BLEU with their intervals, and the learning rate."""

from collections.abc import Sequence
from functools import partial

from dragoman.report.content import Evaluation, Report
from dragoman.report.document import Chart, Line

# Of a normal distribution, 95 % lie within so many standard errors.
_NORMAL_95 = 1.96
_loss_chart = partial(
    Chart, value_title="loss, nats per target token", number_format=".3f", shows_zero=False
)


def validation_loss(report: Report) -> Chart | None:
    validation = _losses("validation", report.evaluations, "validation_loss")
    if validation is None:
        return None
    batches = Line(
        "training batches (not comparable)",
        report.curves.step,
        report.curves.training_loss,
        style="context",
    )
    return _loss_chart(
        title="Validation loss",
        value_range=_range(validation),
        lines=[batches, validation],
    )


def validation_and_training_sample_loss(report: Report) -> Chart | None:
    validation = _losses("validation", report.evaluations, "validation_loss")
    sample = _losses("training sample", report.evaluations, "train_sample_loss")
    if validation is None or sample is None:
        return None
    return _loss_chart(
        title="Validation against a fixed sample of the training pairs, measured alike",
        lines=[validation, sample],
    )


def training_loss(report: Report) -> Chart | None:
    curves = report.curves
    if not curves.step:
        return None
    line = Line(
        "training batches",
        curves.step,
        curves.training_loss,
        curves.lowest_training_loss,
        curves.highest_training_loss,
    )
    return _loss_chart(
        title="Loss of the training batches, with the highest and lowest nearby",
        spread="band",
        lines=[line],
    )


def bleu(report: Report) -> Chart | None:
    found = [e for e in report.evaluations if e.bleu is not None]
    if not found:
        return None
    has_intervals = any(e.bleu_low is not None for e in found)
    line = Line(
        "BLEU",
        [e.step for e in found],
        [e.bleu for e in found],
        [e.bleu_low for e in found] if has_intervals else (),
        [e.bleu_high for e in found] if has_intervals else (),
    )
    return Chart(
        title="BLEU of the validation set" + (", with 95 % intervals" if has_intervals else ""),
        value_title="BLEU, 0 to 100",
        number_format=".1f",
        lines=[line],
    )


def learning_rate(report: Report) -> Chart | None:
    curves = report.curves
    if not curves.step:
        return None
    return Chart(
        title="Learning rate",
        value_title="learning rate",
        number_format=".2e",
        lines=[
            Line("as run", curves.step, curves.learning_rate, color=0),
            Line("as set", curves.step, curves.set_learning_rate, color=1, style="dashed"),
        ],
    )


def _losses(name: str, evaluations: Sequence[Evaluation], figure: str) -> Line | None:
    """Returns the losses with their 95 % intervals, as far as they are known."""
    values = [getattr(evaluation, figure) for evaluation in evaluations]
    errors = [getattr(evaluation, f"{figure}_error") for evaluation in evaluations]
    if all(value is None for value in values):
        return None
    steps = [evaluation.step for evaluation in evaluations]
    if all(error is None for error in errors):
        return Line(name, steps, values)
    reach = [_NORMAL_95 * (error or 0.0) for error in errors]
    pairs = list(zip(values, reach, strict=True))
    lows = [None if value is None else value - by for value, by in pairs]
    highs = [None if value is None else value + by for value, by in pairs]
    return Line(name, steps, values, lows, highs)


def _range(validation: Line) -> tuple[float, float] | None:
    """Returns a range around the evaluations; the first batches of a run would flatten the rest."""
    known = [value for value in validation.values if value is not None]
    if len(known) < 2:
        return None
    margin = 0.25 * (max(known) - min(known)) or 0.1
    return min(known) - margin, max(known) + 2 * margin
