"""The report in the order in which it is read: content comes in, a document goes out.

questions      which plots go with which question
learning       losses and BLEU
learning_rate  as run and as set
step_time      where the time of a step goes, and how it scatters
machines       what the sensors of each host saw
attempts       when the run was alive, what broke it, what else was wrong
translations   what the model makes of sentences that it has not seen
"""

import tomli_w

from dragoman.report.content import Report
from dragoman.report.document import Document, Section, Verbatim
from dragoman.report.sections import attempts, learning, translations
from dragoman.report.sections.questions import also_found, asked
from dragoman.report.wording import count, instant

__all__ = ["document_of"]


def document_of(report: Report) -> Document:
    model = report.model
    return Document(
        title=f"{report.name}: {model.source_language} to {model.target_language}",
        subtitle=f"Training report of {report.run}, read on {instant(report.read_at)}",
        lead=f"A {model.preset} with {count(model.parameters)} parameters and a vocabulary of "
        f"{count(model.vocabulary)} pieces. {report.state.sentence} "
        f"{learning.quality_in_words(report)}".strip(),
        questions=asked(report),
        also=also_found(report),
        sections=[
            Section("Translations", list(translations.blocks(report))),
            Section("Evaluations", list(learning.evaluations(report))),
            Section("Attempts and troubles", list(attempts.blocks(report))),
            Section("Settings", [Verbatim("config.toml as run", tomli_w.dumps(report.settings))]),
        ],
    )
