"""The report in the order in which it is read: content comes in, a document goes out.

questions     the questions, each with its figures and plots
learning      plots of losses, BLEU and the learning rate
steps         plots of where the time of a step goes, and of what it sends
hosts         plots of what the sensors of each host measured
attempts      when the run was alive, what broke it, and other incidents
evaluations   scores and translations
"""

import tomli_w

from dragoman.diagnosis.phrasing import count, instant
from dragoman.report.content import Report
from dragoman.report.document import Appendix, Document, Verbatim
from dragoman.report.sections import attempts, evaluations
from dragoman.report.sections.questions import question_section, to_do

__all__ = ["document_of"]


def document_of(report: Report) -> Document:
    model = report.model
    questions = [
        question_section(answer, report, number) for number, answer in enumerate(report.answers, 1)
    ]
    also = [question_section(answer, report) for answer in report.also]
    return Document(
        title=f"{report.name}: {model.source_language} to {model.target_language}",
        subtitle=f"Training report of {report.run}, read on {instant(report.read_at)}",
        lead=f"A {model.preset} with {count(model.parameters)} parameters and a vocabulary of "
        f"{count(model.vocabulary)} pieces. {evaluations.quality_in_words(report)} "
        f"{report.state.sentence}",
        command=report.state.command,
        questions=questions,
        also=also,
        to_do=to_do([*questions, *also]),
        appendices=[
            Appendix("Translations", list(evaluations.translations(report))),
            Appendix("Evaluations", list(evaluations.evaluations(report))),
            Appendix("Attempts and troubles", list(attempts.blocks(report))),
            Appendix("Settings", [Verbatim("config.toml as run", tomli_w.dumps(report.settings))]),
        ],
    )
