"""What the model makes of sentences that it has not learned from: scores and translations."""

from collections.abc import Iterable, Sequence

from dragoman.diagnosis.phrasing import count, loss, score, seconds
from dragoman.report.content import Evaluation, Report, Score
from dragoman.report.document import Block, Paragraph, Samples, TextTable, Verbatim

ROWS_SHOWN = 12
SAMPLES_SHOWN = 10


def quality_in_words(report: Report) -> str:
    words = []
    if best := _best(report.evaluations):
        words = [f"The best BLEU on validation is {score(best.bleu)}, at step {count(best.step)}."]
    return " ".join([*words, *map(_score_in_words, report.scores)])


def translations(report: Report) -> Iterable[Block]:
    if not report.translations:
        yield Paragraph("Nothing has been translated yet.")
    for found in report.translations:
        shown = found.samples[:SAMPLES_SHOWN]
        equal = sum(sample.equals_reference for sample in shown)
        yield Samples(
            f"{found.split}, step {count(found.step)}: {equal} of the {len(shown)} translations "
            "shown are word for word the reference",
            shown,
        )


def evaluations(report: Report) -> Iterable[Block]:
    if report.evaluations:
        yield TextTable(
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
                for e in _some(report.evaluations)
            ],
            "rrrrrr",
        )
        yield Paragraph(
            "Losses are in evaluation mode, without dropout and label smoothing, and can be "
            "compared. The loss of the training batches has both in it: its course can be read, "
            "but it cannot be compared with the others."
        )
    else:
        yield Paragraph("There is no evaluation yet.")
    rows = [
        ("validation during training", report.bleu_signature, report.chrf_signature),
        *((scored.split, scored.bleu_signature, scored.chrf_signature) for scored in report.scores),
    ]
    signatures = "\n".join(
        f"{where}\n  BLEU {bleu}\n  chrF {chrf}" for where, bleu, chrf in rows if bleu or chrf
    )
    if signatures:
        yield Verbatim("How the scores were computed (sacreBLEU signatures)", signatures)


def _with_error(value: float | None, error: float | None) -> str:
    return loss(value) if value is None or error is None else f"{loss(value)} ± {error:.3f}"


def _score_in_words(scored: Score) -> str:
    if len(scored.checkpoint_steps) == 1:
        weights = f"the checkpoint of step {count(scored.checkpoint_steps[0])}"
    else:
        steps = ", ".join(count(step) for step in scored.checkpoint_steps)
        weights = f"the mean of the checkpoints of steps {steps}"
    interval = ""
    if scored.bleu_low is not None and scored.bleu_high is not None:
        interval = f" ({score(scored.bleu_low)} to {score(scored.bleu_high)})"
    search = "greedy search" if scored.beam == 1 else f"beam {scored.beam}"
    return (
        f"On {scored.split}, {weights} has BLEU {score(scored.bleu)}{interval} and chrF "
        f"{score(scored.chrf)} ({count(scored.sentences)} sentences, {search})."
    )


def _best(evaluations: Sequence[Evaluation]) -> Evaluation | None:
    scored = [e for e in evaluations if e.bleu is not None]
    return max(scored, key=lambda e: e.bleu or 0.0, default=None)


def _some(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Returns few enough for a table: evenly spread, with the last, the best, the lowest loss."""
    every = -(-len(evaluations) // ROWS_SHOWN)
    with_loss = [e for e in evaluations if e.validation_loss is not None]
    lowest = min(with_loss, key=lambda e: e.validation_loss or 0.0, default=None)
    chosen = [*evaluations[::-1][::every], _best(evaluations), lowest]
    return sorted({e.step: e for e in chosen if e}.values(), key=lambda e: e.step)
