"""What the model makes of sentences that it has not learned from."""

from collections.abc import Iterable

from dragoman.report.content import Report
from dragoman.report.document import Block, Paragraph, Samples
from dragoman.report.wording import count

SAMPLES_SHOWN = 10


def blocks(report: Report) -> Iterable[Block]:
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
