"""The constructions, each a function that draws the meaning of one kind of sentence.

In: a random generator. Out: a `Meaning`. What is drawn must fix the German side: where the English
words would leave a choice, no construction draws them.
"""

from collections.abc import Callable
from random import Random

from dragoman.corpus.phrasebook.compounds import (
    appetite,
    care,
    clothing,
    condition,
    contrast,
    errand,
    feeling,
    intention,
    purchase,
    report,
    rest_or_effort,
    uncertainty,
    weather_report,
)
from dragoman.corpus.phrasebook.meaning import Meaning
from dragoman.corpus.phrasebook.questions import (
    question_for_circumstance,
    question_for_measure,
    question_for_object,
    question_for_subject,
    yes_no_question,
)
from dragoman.corpus.phrasebook.relatives import relative_object, relative_subject, relative_thing
from dragoman.corpus.phrasebook.statements import (
    age,
    birthday,
    calendar,
    comparison,
    denial,
    departure,
    description,
    duration,
    existence,
    modal_statement,
    placement,
    position,
    possession,
    price,
    profession,
    statement,
)

CONSTRUCTIONS: dict[Callable[[Random], Meaning], int] = {
    statement: 330,
    denial: 70,
    modal_statement: 80,
    duration: 20,
    description: 50,
    comparison: 20,
    profession: 15,
    position: 25,
    placement: 25,
    existence: 10,
    possession: 15,
    age: 36,
    price: 34,
    departure: 20,
    birthday: 10,
    calendar: 24,
    yes_no_question: 60,
    question_for_subject: 20,
    question_for_object: 30,
    question_for_circumstance: 40,
    question_for_measure: 10,
    weather_report: 12,
    errand: 15,
    rest_or_effort: 15,
    clothing: 10,
    appetite: 12,
    purchase: 10,
    care: 10,
    feeling: 10,
    condition: 25,
    report: 48,
    uncertainty: 26,
    intention: 20,
    contrast: 20,
    relative_subject: 20,
    relative_object: 12,
    relative_thing: 20,
}
"""How often each construction is drawn, in parts of their sum."""
