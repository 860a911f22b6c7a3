"""The abstract meaning of a sentence, which both realizers read and neither changes.

In: entries of the dictionary. Out: trees of noun phrases, prepositional phrases and clauses, as
`constructions` draws them, with the grammatical choices that both languages must agree on.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple, Union

from dragoman.corpus.phrasebook.words import Adjective, Case, Gender, Noun, Phrase, Verb

Person = Literal[0, 1, 2, 3, 4]
"""I, you (always the German "du"), he or she, we, they: an index into conjugation tables."""

Possessive = Literal["my", "your", "his", "her", "our", "their"]
Determiner = Literal["the", "a", "this", "bare", Possessive]

Tense = Literal[
    "present",  # "reads" -> "liest"
    "progressive",  # "is reading" -> "liest"
    "past",  # "read" -> "hat gelesen", or the preterite of a few verbs
    "perfect",  # "has read" -> "hat gelesen"
    "future",  # "will read" -> "wird lesen"
    "ongoing",  # "has been reading for two hours" -> "liest seit zwei Stunden"
    "liking",  # "likes to read" -> "liest gern"
]


class Pronoun(NamedTuple):
    """A personal or interrogative pronoun with its forms in both languages."""

    english: str
    english_object: str
    nominative: str
    accusative: str
    dative: str
    person: Person
    possessive: Possessive


class Name(NamedTuple):
    """A person or a town, the same in all cases."""

    english: str
    german: str
    gender: Gender = "n"


class NounPhrase(NamedTuple):
    """`number` is a numeral; `owner` stands in the genitive and takes the determiner's place;
    `content` is what a vessel holds: "a cup of coffee"."""

    noun: Noun
    plural: bool = False
    determiner: Determiner = "the"
    adjective: Adjective | None = None
    number: Phrase | None = None
    owner: Union["NounPhrase", Name, None] = None
    content: Noun | None = None
    relative: Union["RelativeClause", None] = None


class Gap(NamedTuple):
    """The place of the relative pronoun as subject of its clause."""

    plural: bool


Nominal = NounPhrase | Pronoun | Name | Gap


class PrepositionalPhrase(NamedTuple):
    english: str
    german: str
    case: Case
    nominal: Nominal


class Comparison(NamedTuple):
    """ "older than my brother"."""

    adjective: Adjective
    than: Nominal


Complement = PrepositionalPhrase | Phrase | Adjective | Comparison | NounPhrase


Conjugation = tuple[str, str, str, str, str]
"""One form for each `Person`."""


class Modal(NamedTuple):
    """English says "wants to" plainly, and "does" + "want to" when it asks or denies."""

    plain: Conjugation
    auxiliary: Conjugation
    rest: str
    german: Conjugation


class Clause(NamedTuple):
    """A verb with all that belongs to it; the realizers know where each part stands."""

    subject: Nominal
    verb: Verb
    tense: Tense = "present"
    modal: Modal | None = None
    negated: bool = False
    dative: Nominal | None = None
    accusative: Nominal | None = None
    complement: Complement | None = None
    infinitive: Union["Clause", None] = None
    frequency: Phrase | None = None
    time: Phrase | None = None
    manner: Phrase | None = None
    place: PrepositionalPhrase | Phrase | None = None
    front: Literal["", "time", "place"] = ""


class RelativeClause(NamedTuple):
    """A clause without the nominal in `role`, for which the relative pronoun stands."""

    role: Literal["subject", "accusative", "dative"]
    clause: Clause


class Question(NamedTuple):
    """A yes/no question, or one for the part that `asked` stands for and the clause lacks."""

    clause: Clause
    asked: Phrase | None = None


class Compound(NamedTuple):
    """Two clauses; a subordinate one has the German verb at its end and may come first."""

    first: Clause
    conjunction: Phrase
    second: Clause
    subordinate: bool = True
    subordinate_first: bool = False


class Formula(NamedTuple):
    """A sentence about clock or calendar, with the words that make its combination."""

    english: str
    german: str
    lemmas: tuple[str, ...]


Meaning = Clause | Question | Compound | Formula


def combination(meaning: Meaning) -> str:
    """The content words of a sentence in their roles, without tense, number, time or pronouns.

    Two sentences of one combination differ in grammar only, so the combination is what must not
    be shared between training and test.
    """
    return "|".join(_lemmas(meaning))


def _lemmas(part: Meaning | Nominal | Complement) -> Iterator[str]:
    match part:
        case Clause():
            yield part.verb.lemma
            for inner in (part.subject, part.dative, part.accusative, part.complement, part.place):
                yield ","
                if inner is not None:
                    yield from _lemmas(inner)
            if part.infinitive is not None:
                yield from _lemmas(part.infinitive)
        case NounPhrase():
            yield part.noun.english
            if part.owner is not None:
                yield from _lemmas(part.owner)
            if part.content is not None:
                yield part.content.english
            if part.relative is not None:
                yield part.relative.role
                yield from _lemmas(part.relative.clause)
        case PrepositionalPhrase():
            yield part.english
            yield from _lemmas(part.nominal)
        case Comparison():
            yield part.adjective.english
            yield from _lemmas(part.than)
        case Question():
            yield part.asked.english if part.asked else "?"
            yield from _lemmas(part.clause)
        case Compound():
            yield part.conjunction.english
            yield from _lemmas(part.first)
            yield from _lemmas(part.second)
        case Formula():
            yield from part.lemmas
        case Name() | Adjective() | Phrase():
            yield part.english
        case Pronoun() | Gap():
            pass
