"""English: inflection, and the realizer that turns a meaning into an English sentence."""

from functools import cache
from typing import NamedTuple

from dragoman.corpus.phrasebook.meaning import (
    Clause,
    Comparison,
    Complement,
    Compound,
    Conjugation,
    Formula,
    Gap,
    Meaning,
    Name,
    Nominal,
    NounPhrase,
    Person,
    PrepositionalPhrase,
    Pronoun,
    Question,
    Tense,
)
from dragoman.corpus.phrasebook.words import Adjective, Phrase, Verb, with_doubled_consonant

_AM: Conjugation = ("am", "are", "is", "are", "are")
_WAS: Conjugation = ("was", "were", "was", "were", "were")
_HAVE: Conjugation = ("have", "have", "has", "have", "have")
_DO: Conjugation = ("do", "do", "does", "do", "do")


def sentence(meaning: Meaning) -> str:
    """A whole sentence with its capital and its final punctuation."""
    mark = "."
    match meaning:
        case Formula():
            words = meaning.english
        case Question():
            words, mark = _question(meaning), "?"
        case Compound():
            words = _compound(meaning)
        case _:
            words = statement(meaning)
    return words[0].upper() + words[1:] + mark


def _compound(compound: Compound) -> str:
    first, second = statement(compound.first), statement(compound.second)
    conjunction = compound.conjunction.english
    if compound.subordinate_first:
        return f"{conjunction} {second}, {first}"
    comma = "" if compound.subordinate else ","
    return f"{first}{comma} {conjunction} {second}"


def statement(clause: Clause) -> str:
    """A clause in the order subject, verb, objects, manner, complement, place, time."""
    auxiliary, rest, plain = _verb_group(clause)
    subject = nominal(clause.subject, is_subject=True)
    frequency = clause.frequency.english if clause.frequency else ""
    if clause.negated:
        verbs = [auxiliary + "not" if auxiliary == "can" else auxiliary + " not", frequency, rest]
    elif plain:
        verbs = [frequency, plain]
    else:
        verbs = [auxiliary, frequency, rest]
    front = ""
    if clause.front == "time" and clause.time is not None:
        front = clause.time.english
    elif clause.front == "place" and clause.place is not None:
        front = _complement(clause.place)
    return _join([front, subject, *verbs, *_predicate(clause)])


def _question(question: Question) -> str:
    clause = question.clause
    asked = question.asked.english if question.asked else ""
    is_about_subject = isinstance(clause.subject, Pronoun) and clause.subject.english == "who"
    if is_about_subject:
        return statement(clause)
    auxiliary, rest, _ = _verb_group(clause)
    subject = nominal(clause.subject, is_subject=True)
    frequency = clause.frequency.english if clause.frequency else ""
    return _join([asked, auxiliary, subject, frequency, rest, *_predicate(clause)])


def _join(words: list[str]) -> str:
    return " ".join(filter(None, words))


def _predicate(clause: Clause) -> list[str]:
    words = [clause.verb.particle]
    if clause.dative is not None:
        words.append(nominal(clause.dative))
    if clause.accusative is not None:
        words.append(nominal(clause.accusative, denied=clause.negated))
    if clause.manner is not None:
        words.append(clause.manner.english)
    if clause.complement is not None:
        words.append(_complement(clause.complement))
    if clause.infinitive is not None:
        words += ["to", clause.infinitive.verb.english, *_predicate(clause.infinitive)]
    if clause.place is not None and clause.front != "place":
        words.append(_complement(clause.place))
    if clause.time is not None and clause.front != "time":
        words.append(clause.time.english)
    return words


def _complement(complement: Complement) -> str:
    match complement:
        case PrepositionalPhrase():
            return f"{complement.english} {nominal(complement.nominal)}"
        case Comparison():
            than = nominal(complement.than, is_subject=True)
            return f"{complement.adjective.english_comparative} than {than}"
        case NounPhrase():
            return nominal(complement)
        case Phrase() | Adjective():
            return complement.english


class _VerbGroup(NamedTuple):
    """`auxiliary` + `rest` in questions and denials, `plain` (if any) elsewhere."""

    auxiliary: str
    rest: str
    plain: str


def _verb_group(clause: Clause) -> _VerbGroup:
    person = person_of(clause.subject)
    if clause.modal is None:
        return _tensed(clause.verb, clause.tense, person)
    modal, base = clause.modal, clause.verb.english
    rest = f"{modal.rest} {base}" if modal.rest else base
    return _VerbGroup(modal.auxiliary[person], rest, f"{modal.plain[person]} {base}")


@cache
def _tensed(verb: Verb, tense: Tense, person: Person) -> _VerbGroup:
    base = verb.english
    do = _DO[person]
    match tense:
        case "present":
            if base == "be":
                return _VerbGroup(_AM[person], "", "")
            return _VerbGroup(do, base, third_person(base) if person == 2 else base)
        case "past":
            if base == "be":
                return _VerbGroup(_WAS[person], "", "")
            return _VerbGroup("did", base, verb.english_past)
        case "progressive":
            return _VerbGroup(_AM[person], progressive(base), "")
        case "perfect":
            return _VerbGroup(_HAVE[person], verb.english_participle, "")
        case "future":
            return _VerbGroup("will", base, "")
        case "ongoing":
            return _VerbGroup(_HAVE[person], f"been {progressive(base)}", "")
        case "liking":
            likes = "likes" if person == 2 else "like"
            return _VerbGroup(do, f"like to {base}", f"{likes} to {base}")


def third_person(base: str) -> str:
    """ "reads", "watches", "carries", "goes", "has"."""
    if base == "have":
        return "has"
    if base.endswith(("s", "x", "ch", "sh", "go", "do")):
        return base + "es"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies"
    return base + "s"


def progressive(base: str) -> str:
    """ "reading", "baking", "lying", "sitting", "seeing"."""
    if base.endswith("ie"):
        return base[:-2] + "ying"
    if base.endswith("e") and not base.endswith("ee") and base != "be":
        return base[:-1] + "ing"
    return with_doubled_consonant(base) + "ing"


def indefinite_article(next_word: str) -> str:
    """ "a" or "an"; the dictionary has no word whose sound belies its first letter but these."""
    starts_with_vowel = next_word[0] in "aeiou" and not next_word.startswith(("uni", "use"))
    return "an" if starts_with_vowel else "a"


def person_of(subject: Nominal) -> Person:
    """The row of the conjugation that a subject asks for."""
    match subject:
        case Pronoun():
            return subject.person
        case NounPhrase() | Gap():
            return 4 if subject.plural else 2
        case Name():
            return 2


def nominal(part: Nominal, *, is_subject: bool = False, denied: bool = False) -> str:
    """A noun phrase, name or pronoun; `denied` turns bare objects into "any apples"."""
    match part:
        case NounPhrase():
            return noun_phrase(part, denied=denied)
        case Pronoun():
            return part.english if is_subject else part.english_object
        case Name():
            return part.english
        case Gap():
            return ""


def noun_phrase(phrase: NounPhrase, *, denied: bool = False) -> str:
    """Owner or determiner, numeral, adjective, noun and what hangs on it."""
    head = phrase.noun.english_plural if phrase.plural else phrase.noun.english
    words = f"{phrase.adjective.english} {head}" if phrase.adjective else head
    if phrase.number is not None:
        words = f"{phrase.number.english} {words}"
    if phrase.owner is not None:
        words = f"{nominal(phrase.owner)}'s {words}"
    elif phrase.determiner == "a":
        words = f"{indefinite_article(words)} {words}"
    elif phrase.determiner != "bare":
        demonstrative = "these" if phrase.plural else "this"
        determiner = demonstrative if phrase.determiner == "this" else phrase.determiner
        words = f"{determiner} {words}"
    elif denied:
        words = f"any {words}"
    if phrase.content is not None:
        words = f"{words} of {phrase.content.english}"
    if phrase.relative is not None:
        pronoun = "who" if phrase.noun.is_person else "that"
        words = f"{words} {pronoun} {statement(phrase.relative.clause)}"
    return words
