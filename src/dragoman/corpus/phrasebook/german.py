"""German: inflection, and the realizer that turns a meaning into a German sentence."""

from functools import cache
from typing import Literal

from dragoman.corpus.phrasebook.english import person_of
from dragoman.corpus.phrasebook.meaning import (
    Clause,
    Comparison,
    Complement,
    Compound,
    Conjugation,
    Determiner,
    Formula,
    Gap,
    Meaning,
    Name,
    Nominal,
    NounPhrase,
    PrepositionalPhrase,
    Pronoun,
    Question,
    RelativeClause,
)
from dragoman.corpus.phrasebook.words import Adjective, Case, Noun, Phrase, Verb, german_stem

Agreement = Literal["m", "f", "n", "plural"]
Declension = Literal["strong", "weak", "mixed"]
VerbPosition = Literal["first", "second", "last"]

_AGREEMENTS: tuple[Agreement, ...] = ("m", "f", "n", "plural")


def _table(rows: str) -> dict[tuple[Case, Agreement], str]:
    """Four cases below each other, three genders and the plural side by side; "-" is nothing."""
    cases: tuple[Case, ...] = ("nominative", "accusative", "dative", "genitive")
    return {
        (case, agreement): "" if cell == "-" else cell
        for case, row in zip(cases, rows.strip().splitlines(), strict=True)
        for agreement, cell in zip(_AGREEMENTS, row.split(), strict=True)
    }


DEFINITE_ARTICLE = _table("""
    der  die  das  die
    den  die  das  die
    dem  der  dem  den
    des  der  des  der
""")
RELATIVE_PRONOUN = DEFINITE_ARTICLE | {("dative", "plural"): "denen"}
# "dieser"
DEMONSTRATIVE_ENDING = _table("""
    er   e    es   e
    en   e    es   e
    em   er   em   en
    es   er   es   er
""")
# "ein", "kein" and the possessives
INDEFINITE_ENDING = _table("""
    -    e    -    e
    en   e    -    e
    em   er   em   en
    es   er   es   er
""")
ADJECTIVE_ENDING: dict[Declension, dict[tuple[Case, Agreement], str]] = {
    "strong": _table("""
        er   e    es   e
        en   e    es   e
        em   er   em   en
        en   er   en   er
    """),
    "weak": _table("""
        e    e    e    en
        en   e    e    en
        en   en   en   en
        en   en   en   en
    """),
    "mixed": _table("""
        er   e    es   en
        en   e    es   en
        en   en   en   en
        en   en   en   en
    """),
}
_INDEFINITE_STEM: dict[Determiner, str] = {
    "a": "ein",
    "my": "mein",
    "your": "dein",
    "his": "sein",
    "her": "ihr",
    "our": "unser",
    "their": "ihr",
}
CONTRACTIONS = {
    ("an", "das"): "ans",
    ("an", "dem"): "am",
    ("bei", "dem"): "beim",
    ("in", "das"): "ins",
    ("in", "dem"): "im",
    ("von", "dem"): "vom",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
}

_HABEN: Conjugation = ("habe", "hast", "hat", "haben", "haben")
_SEIN: Conjugation = ("bin", "bist", "ist", "sind", "sind")
_WERDEN: Conjugation = ("werde", "wirst", "wird", "werden", "werden")
_WISSEN: Conjugation = ("weiß", "weißt", "weiß", "wissen", "wissen")
_IRREGULAR_PRESENT = {"haben": _HABEN, "sein": _SEIN, "wissen": _WISSEN}
_REFLEXIVE: Conjugation = ("mich", "dich", "sich", "uns", "sich")


def sentence(meaning: Meaning) -> str:
    """A whole sentence with its capital and its final punctuation."""
    mark = "."
    match meaning:
        case Formula():
            words = meaning.german
        case Question():
            words, mark = _question(meaning), "?"
        case Compound():
            words = _compound(meaning)
        case _:
            words = clause(meaning, "second")
    # A relative clause brings its closing comma, which the end of the sentence makes superfluous.
    return words[0].upper() + words[1:].removesuffix(",") + mark


def _compound(compound: Compound) -> str:
    conjunction = compound.conjunction.german
    if not compound.subordinate:
        comma = "" if conjunction == "und" else ","
        first, second = clause(compound.first, "second"), clause(compound.second, "second")
        return f"{first}{comma} {conjunction} {second}"
    subordinate = f"{conjunction} {clause(compound.second, 'last')}"
    if compound.subordinate_first:
        return f"{subordinate}, {clause(compound.first, 'first')}"
    return f"{clause(compound.first, 'second')}, {subordinate}"


def _question(question: Question) -> str:
    asked = question.clause
    if isinstance(asked.subject, Pronoun) and asked.subject.english == "who":
        return clause(asked, "second")
    words = clause(asked, "first")
    return f"{question.asked.german} {words}" if question.asked else words


def clause(meaning: Clause, position: VerbPosition) -> str:
    """A clause with its finite verb in the given position, the rest of the verb at the end."""
    finite, tail = _verb_complex(meaning)
    subject = nominal(meaning.subject, "nominative")
    front = subject
    if position == "second":
        if meaning.front == "time" and meaning.time is not None:
            front = meaning.time.german
        elif meaning.front == "place" and meaning.place is not None:
            front = _complement(meaning.place)
    middle = _middle_field(meaning, with_fronted=position != "second")
    reflexive = _REFLEXIVE[person_of(meaning.subject)] if meaning.verb.reflexive else ""
    inverted = [subject, reflexive]  # "freut er sich", but "freut sich der Mann"
    if not isinstance(meaning.subject, Pronoun):
        inverted.reverse()
    match position:
        case "first":
            words = [finite, *inverted, *middle, tail]
        case "second" if front is subject:
            words = [subject, finite, reflexive, *middle, tail]
        case "second":
            words = [front, finite, *inverted, *middle, tail]
        case "last":
            is_separable = tail != "" and tail == meaning.verb.prefix
            end = tail + finite if is_separable else f"{tail} {finite}"
            words = [subject, reflexive, *middle, end]
    text = " ".join(filter(None, words)).replace("  ", " ")
    if meaning.infinitive is not None:
        text += ", " + _infinitive_clause(meaning.infinitive)
    return text


def _infinitive_clause(meaning: Clause) -> str:
    """ "die Tür zu öffnen", "das Kind abzuholen"."""
    verb = meaning.verb
    infinitive = f"{verb.prefix}zu{verb.infinitive}" if verb.prefix else f"zu {verb.infinitive}"
    reflexive = _REFLEXIVE[person_of(meaning.subject)] if verb.reflexive else ""
    middle = _middle_field(meaning, with_fronted=True)
    return " ".join(filter(None, [reflexive, *middle, infinitive]))


def _middle_field(meaning: Clause, *, with_fronted: bool) -> list[str]:
    """What stands between the finite verb (and subject) and the end of the verb.

    Pronouns come first, then time, the dative, manner, place, the accusative and the complement.
    "nicht" and adverbs like "oft" stand behind all that is known already, so behind a definite
    object; "nicht" stands before manner and place.
    """
    pronouns: list[str] = []
    known: list[str] = []
    new: list[str] = []
    is_kein = meaning.negated and _is_indefinite(meaning.accusative)
    needs_nicht = meaning.negated and not is_kein
    if meaning.dative is not None:
        field = pronouns if isinstance(meaning.dative, Pronoun) else known
        field.append(nominal(meaning.dative, "dative"))
    if meaning.accusative is not None:
        is_early = needs_nicht or (
            meaning.frequency is not None and not _is_indefinite(meaning.accusative)
        )
        field = known if is_early else new
        field = pronouns if isinstance(meaning.accusative, Pronoun) else field
        field.append(nominal(meaning.accusative, "accusative", denied=is_kein))

    adverbs = ["gern"] if meaning.tense == "liking" else []
    if meaning.manner is not None:
        adverbs.append(meaning.manner.german)
    if meaning.place is not None and (with_fronted or meaning.front != "place"):
        adverbs.append(_complement(meaning.place))

    words = pronouns
    if meaning.time is not None and (with_fronted or meaning.front != "time"):
        words.append(meaning.time.german)
    words += known
    if meaning.frequency is not None:
        words.append(meaning.frequency.german)
    if needs_nicht:
        words.append("nicht")
    words += adverbs + new
    if meaning.complement is not None:
        words.append(_complement(meaning.complement))
    return words


def _is_indefinite(part: Nominal | None) -> bool:
    return isinstance(part, NounPhrase) and part.owner is None and part.determiner in ("a", "bare")


def _complement(complement: Complement) -> str:
    match complement:
        case PrepositionalPhrase():
            return prepositional_phrase(complement)
        case Comparison():
            than = nominal(complement.than, "nominative")
            return f"{complement.adjective.german_comparative} als {than}"
        case NounPhrase():
            is_mere_profession = complement.determiner == "a" and complement.adjective is None
            if is_mere_profession:  # "Paul ist Bäcker", but "Paul ist ein guter Bäcker"
                return complement.noun.german
            return noun_phrase(complement, "nominative")
        case Phrase() | Adjective():
            return complement.german


def prepositional_phrase(phrase: PrepositionalPhrase) -> str:
    """Contracts preposition and article where German does: "im", "zur", "ans"."""
    words = nominal(phrase.nominal, phrase.case)
    article, _, rest = words.partition(" ")
    contraction = CONTRACTIONS.get((phrase.german, article))
    return f"{contraction} {rest}" if contraction else f"{phrase.german} {words}"


def _verb_complex(meaning: Clause) -> tuple[str, str]:
    """The finite verb, and the part of the verb that goes to the end of the clause."""
    person = person_of(meaning.subject)
    verb = meaning.verb
    if meaning.modal is not None:
        return meaning.modal.german[person], verb.prefix + verb.infinitive
    match meaning.tense:
        case "past" | "perfect":
            if verb.preterite:
                return preterite(verb)[person], verb.prefix
            auxiliary = _SEIN if verb.auxiliary == "sein" else _HABEN
            return auxiliary[person], verb.participle
        case "future":
            return _WERDEN[person], verb.prefix + verb.infinitive
        case "present" | "progressive" | "ongoing" | "liking":
            return present(verb)[person], verb.prefix


@cache
def present(verb: Verb) -> Conjugation:
    """The present tense, without the separable prefix."""
    infinitive = verb.infinitive
    if infinitive in _IRREGULAR_PRESENT:
        return _IRREGULAR_PRESENT[infinitive]
    stem = german_stem(infinitive)
    second_stem = verb.third_person.removesuffix("t")
    # The s of the ending merges with a sibilant: "du liest", "du sitzt".
    second = second_stem + ("t" if second_stem.endswith(("s", "ß", "z", "x")) else "st")
    return (stem + "e", second, verb.third_person, infinitive, infinitive)


@cache
def preterite(verb: Verb) -> Conjugation:
    """The preterite: "lag, lagst, lag, lagen", "hatte, hattest, hatte, hatten"."""
    form = verb.preterite
    plural = form + ("n" if form.endswith("e") else "en")
    return (form, form + "st", form, plural, plural)


def nominal(part: Nominal, case: Case, *, denied: bool = False) -> str:
    """A noun phrase, name or pronoun in a case; `denied` makes "ein" and nothing "kein"."""
    match part:
        case NounPhrase():
            return noun_phrase(part, case, denied=denied)
        case Pronoun():
            if case == "dative":
                return part.dative
            return part.nominative if case == "nominative" else part.accusative
        case Name():
            return part.german
        case Gap():
            return ""


def noun_phrase(phrase: NounPhrase, case: Case, *, denied: bool = False) -> str:
    """Determiner, numeral, adjective, noun and what follows it."""
    noun = phrase.noun
    agreement: Agreement = "plural" if phrase.plural else noun.gender
    words = noun_form(noun, case, phrase.plural)
    determiner, declension = _determiner(phrase, case, agreement, denied)
    if phrase.adjective is not None:
        ending = ADJECTIVE_ENDING[declension][case, agreement]
        words = f"{phrase.adjective.stem}{ending} {words}"
    if phrase.number is not None:
        words = f"{phrase.number.german} {words}"
    if determiner:
        words = f"{determiner} {words}"
    if isinstance(phrase.owner, NounPhrase):
        words = f"{words} {noun_phrase(phrase.owner, 'genitive')}"
    if phrase.content is not None:
        words = f"{words} {phrase.content.german}"
    if phrase.relative is not None:
        words = f"{words}, {_relative_clause(phrase.relative, agreement)},"
    return words


def _relative_clause(relative: RelativeClause, agreement: Agreement) -> str:
    case: Case = "nominative" if relative.role == "subject" else relative.role
    return f"{RELATIVE_PRONOUN[case, agreement]} {clause(relative.clause, 'last')}"


def _determiner(
    phrase: NounPhrase, case: Case, agreement: Agreement, denied: bool
) -> tuple[str, Declension]:
    """The determiner and the declension of an adjective behind it."""
    if isinstance(phrase.owner, Name):  # "Annas neues Auto"
        return phrase.owner.german + "s", "strong"
    if phrase.owner is not None or phrase.determiner == "the":
        return DEFINITE_ARTICLE[case, agreement], "weak"
    if phrase.determiner == "this":
        return "dies" + DEMONSTRATIVE_ENDING[case, agreement], "weak"
    if denied:
        return "kein" + INDEFINITE_ENDING[case, agreement], "mixed"
    if phrase.determiner == "bare":
        return "", "strong"
    stem = _INDEFINITE_STEM[phrase.determiner]
    return stem + INDEFINITE_ENDING[case, agreement], "mixed"


@cache
def noun_form(noun: Noun, case: Case, plural: bool) -> str:
    """The noun itself, which German marks in few cases."""
    if plural:
        needs_n = case == "dative" and not noun.german_plural.endswith(("n", "s"))
        return noun.german_plural + ("n" if needs_n else "")
    if noun.weak:
        return noun.german if case == "nominative" else noun.german_plural
    if case == "genitive" and noun.gender != "f":
        return noun.german + ("es" if _has_long_genitive(noun.german) else "s")
    return noun.german


def _has_long_genitive(german: str) -> bool:
    """ "des Mannes" and "des Gastes", but "des Vaters"."""
    syllables = sum(
        letter in "aeiouäöü" and (index == 0 or german[index - 1].lower() not in "aeiouäöü")
        for index, letter in enumerate(german.lower())
    )
    return syllables == 1 or german.endswith(("s", "ß", "z", "x"))
