"""What to do first: the advice of all answers, the most pressing first."""

from dragoman.report.document import Document, Question
from dragoman.report.health import Health

_PRESSING: dict[Health, int] = {"poor": 0, "watch": 1, "fact": 2, "open": 3, "good": 4}


def to_do(document: Document) -> list[Question]:
    """Each advice once; what is well and what is only open comes without a hurry."""
    found: dict[str, Question] = {}
    for question in sorted(
        (*document.questions, *document.also), key=lambda q: _PRESSING[q.answer.health]
    ):
        if question.answer.advice and question.answer.health in ("poor", "watch", "fact"):
            found.setdefault(question.answer.advice, question)
    return list(found.values())
