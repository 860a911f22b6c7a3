"""Losses and BLEU during training, with how far each could be off."""

from collections.abc import Iterable, Sequence

from dragoman.report.content import Evaluation, Report, Score
from dragoman.report.document import Block, Chart, Line, Paragraph, Table, Verbatim
from dragoman.report.wording import count, loss, score, seconds

ROWS_SHOWN = 12
# Of a normal distribution, 95 % lie within so many standard errors.
_NORMAL_95 = 1.96


def progress(report: Report) -> Iterable[Block]:
    if validation := _validation(report):
        yield Chart(
            title="Validation loss",
            value_title="loss, nats per target token",
            number_format=".3f",
            shows_zero=False,
            value_range=_range(validation),
            lines=[
                Line(
                    "training batches (not comparable)",
                    report.curves.step,
                    report.curves.training_loss,
                    style="context",
                ),
                validation,
            ],
        )
    yield from quality(report)


def gap(report: Report) -> Iterable[Block]:
    found = report.evaluations
    sample = _with_errors(
        "training sample",
        found,
        [e.train_sample_loss for e in found],
        [e.train_sample_loss_error for e in found],
    )
    if (validation := _validation(report)) and sample:
        yield Chart(
            title="Validation against a fixed sample of the training pairs, measured alike",
            value_title="loss, nats per target token",
            number_format=".3f",
            shows_zero=False,
            lines=[validation, sample],
        )


def quality(report: Report) -> Iterable[Block]:
    found = [e for e in report.evaluations if e.bleu is not None]
    if not found:
        return
    has_intervals = any(e.bleu_low is not None for e in found)
    yield Chart(
        title="BLEU of the validation set" + (", with 95 % intervals" if has_intervals else ""),
        value_title="BLEU, 0 to 100",
        number_format=".1f",
        lines=[
            Line(
                "BLEU",
                [e.step for e in found],
                [e.bleu for e in found],
                [e.bleu_low for e in found] if has_intervals else (),
                [e.bleu_high for e in found] if has_intervals else (),
            )
        ],
    )


def spikes(report: Report) -> Iterable[Block]:
    curves = report.curves
    if curves.step:
        yield Chart(
            title="Loss of the training batches, with the highest and lowest nearby",
            value_title="loss, nats per target token",
            number_format=".3f",
            shows_zero=False,
            spread="band",
            lines=[
                Line(
                    "training batches",
                    curves.step,
                    curves.training_loss,
                    curves.lowest_training_loss,
                    curves.highest_training_loss,
                )
            ],
        )


def quality_in_words(report: Report) -> str:
    best = max(
        (e for e in report.evaluations if e.bleu is not None),
        key=lambda e: e.bleu or 0.0,
        default=None,
    )
    words = []
    if best:
        words.append(
            f"The best BLEU on validation is {score(best.bleu)}, at step {count(best.step)}."
        )
    words += [_score_in_words(scored) for scored in report.scores]
    return " ".join(words)


def evaluations(report: Report) -> Iterable[Block]:
    found = report.evaluations
    if not found:
        yield Paragraph("There is no evaluation yet.")
    else:
        yield Table(
            ["step", "validation loss", "training sample", "BLEU", "chrF", "took"],
            [
                [
                    count(e.step),
                    _with_error(e.validation_loss, e.validation_loss_error),
                    _with_error(e.train_sample_loss, e.train_sample_loss_error),
                    score(e.bleu),
                    score(e.chrf),
                    seconds(e.seconds),
                ]
                for e in _some(found)
            ],
            "rrrrrr",
        )
        yield Paragraph(
            "Losses are in evaluation mode, without dropout and label smoothing, and can be "
            "compared. The loss of the training batches has both in it: its course can be read, "
            "but it cannot be compared with the others."
        )
    rows = [
        ("validation during training", report.bleu_signature, report.chrf_signature),
        *((scored.split, scored.bleu_signature, scored.chrf_signature) for scored in report.scores),
    ]
    signatures = "\n".join(
        f"{where}\n  BLEU {bleu}\n  chrF {chrf}" for where, bleu, chrf in rows if bleu or chrf
    )
    if signatures:
        yield Verbatim("How the scores were computed (sacreBLEU signatures)", signatures)


def _validation(report: Report) -> Line | None:
    found = report.evaluations
    return _with_errors(
        "validation",
        found,
        [e.validation_loss for e in found],
        [e.validation_loss_error for e in found],
    )


def _range(validation: Line) -> tuple[float, float] | None:
    """Around the evaluations: the first batches of a run would flatten all that follows."""
    known = [value for value in validation.values if value is not None]
    if len(known) < 2:
        return None
    margin = 0.25 * (max(known) - min(known)) or 0.1
    return min(known) - margin, max(known) + 2 * margin


def _with_errors(
    name: str,
    evaluations: Sequence[Evaluation],
    values: Sequence[float | None],
    errors: Sequence[float | None],
) -> Line | None:
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


def _with_error(value: float | None, error: float | None) -> str:
    return loss(value) if value is None or error is None else f"{loss(value)} ± {error:.3f}"


def _score_in_words(scored: Score) -> str:
    if len(scored.checkpoint_steps) == 1:
        weights = f"the checkpoint of step {count(scored.checkpoint_steps[0])}"
    else:
        steps = ", ".join(count(step) for step in scored.checkpoint_steps)
        weights = f"the mean of the checkpoints of steps {steps}"
    search = "greedy search" if scored.beam == 1 else f"beam {scored.beam}"
    return (
        f"On {scored.split}, {weights} has BLEU {score(scored.bleu)} and chrF "
        f"{score(scored.chrf)} ({count(scored.sentences)} sentences, {search})."
    )


def _some(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Few enough for a table: evenly spread, with the last, the best and the lowest loss."""
    every = -(-len(evaluations) // ROWS_SHOWN)
    chosen = list(evaluations[::-1][::every])
    by_bleu = [e for e in evaluations if e.bleu is not None]
    by_loss = [e for e in evaluations if e.validation_loss is not None]
    if by_bleu:
        chosen.append(max(by_bleu, key=lambda e: e.bleu or 0.0))
    if by_loss:
        chosen.append(min(by_loss, key=lambda e: e.validation_loss or 0.0))
    return sorted({e.step: e for e in chosen}.values(), key=lambda e: e.step)
