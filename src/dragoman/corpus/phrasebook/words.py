"""The parts of speech: what a dictionary has to say about a word of both languages.

In: dictionary notation, as in `noun("apple", "der Apfel, Äpfel")`. Out: immutable entries, which
the tables (`nouns`, `verbs`, `adverbials`) list, `meaning` combines, and `english` and `german`
inflect. Entries are compared by identity, so that they are cheap keys for cached inflection.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

Gender = Literal["m", "f", "n"]
Case = Literal["nominative", "accusative", "dative", "genitive"]
Auxiliary = Literal["haben", "sein"]

_GENDERS: dict[str, Gender] = {"der": "m", "die": "f", "das": "n"}


class Phrase(NamedTuple):
    """Words that do not inflect: adverbs, expressions of time, fixed parts of idioms."""

    english: str
    german: str


@dataclass(frozen=True, eq=False, slots=True)
class Adjective:
    """`stem` takes the German endings: `teur` for `teuer`."""

    english: str
    german: str
    stem: str
    english_comparative: str
    german_comparative: str


@dataclass(frozen=True, eq=False, slots=True)
class Noun:
    """An empty plural marks a noun that is used in the singular only.

    Weak nouns end in -n in all cases but the nominative.
    """

    english: str
    english_plural: str
    german: str
    german_plural: str
    gender: Gender
    weak: bool
    is_person: bool = False
    adjectives: tuple[Adjective, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Site:
    """A place with its prepositions: one is `at` it (dative) and goes `to` it (`to_case`)."""

    noun: Noun
    english_at: str
    german_at: str
    german_to: str
    to_case: Case


@dataclass(frozen=True, eq=False, slots=True)
class Verb:
    """Principal parts of both languages.

    `particle` follows the English verb ("look for"), `prefix` leaves the German one ("ab|holen").
    `preterite` is set where German prefers it to the perfect ("war"); `stative` verbs have no
    English progressive.
    """

    english: str
    english_past: str
    english_participle: str
    particle: str
    infinitive: str
    prefix: str
    third_person: str
    participle: str
    auxiliary: Auxiliary
    preterite: str
    stative: bool
    reflexive: bool

    @property
    def lemma(self) -> str:
        """Unique among the verbs, as no English verb has two translations in one construction."""
        return f"{self.english} {self.particle} {self.prefix}{self.infinitive}"

    @property
    def past_looks_present(self) -> bool:
        """True for "put" and "read", whose tense would be a guess without an auxiliary."""
        return self.english == self.english_past


def adjective(english: str, german: str, stem: str = "") -> Adjective:
    """`adjective("old, older", "alt, älter")`; the comparatives may be left out."""
    positive, _, comparative = english.partition(", ")
    german_positive, _, german_comparative = german.partition(", ")
    return Adjective(
        positive, german_positive, stem or german_positive, comparative, german_comparative
    )


def noun(english: str, german: str, *, weak: bool = False) -> Noun:
    """`noun("child, children", "das Kind, Kinder")`; without a German plural it stays singular."""
    singular, _, plural = english.partition(", ")
    german_singular, _, german_plural = german.partition(", ")
    article, german_singular = german_singular.split(" ", 1)
    plural = plural or regular_plural(singular)
    return Noun(singular, plural, german_singular, german_plural, _GENDERS[article], weak)


def regular_plural(singular: str) -> str:
    """The English plural; irregular ones are in the tables."""
    if singular.endswith(("s", "x", "ch", "sh")):
        return singular + "es"
    if singular.endswith("y") and singular[-2] not in "aeiou":
        return singular[:-1] + "ies"
    return singular + "s"


def verb(
    english: str,
    german: str,
    *,
    particle: str = "",
    preterite: str = "",
    stative: bool = False,
    reflexive: bool = False,
) -> Verb:
    """`verb("go, went, gone", "gehen, geht, ist gegangen")`; regular verbs need no more than
    the infinitives, and `|` stands behind a separable prefix."""
    base, *irregular = english.split(", ")
    past, participle = irregular or (regular_past(base), regular_past(base))
    dictionary_form, *german_irregular = german.split(", ")
    prefix, _, infinitive = dictionary_form.rpartition("|")
    third_person, german_participle = german_irregular or (
        regular_third_person(infinitive),
        prefix + regular_participle(infinitive),
    )
    auxiliary: Auxiliary = "sein" if german_participle.startswith("ist ") else "haben"
    return Verb(
        english=base,
        english_past=past,
        english_participle=participle,
        particle=particle,
        infinitive=infinitive,
        prefix=prefix,
        third_person=third_person,
        participle=german_participle.removeprefix("ist "),
        auxiliary=auxiliary,
        preterite=preterite,
        stative=stative,
        reflexive=reflexive,
    )


def regular_past(base: str) -> str:
    """The English simple past: "baked", "carried", "hugged", "opened"."""
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ied"
    return with_doubled_consonant(base) + "ed"


def with_doubled_consonant(base: str) -> str:
    """Doubles the last letter of a short syllable, as in "hug", "hugged"."""
    vowels = [letter for letter in base if letter in "aeiou"]
    is_short_syllable = (
        len(vowels) == 1 and base[-2:-1] in vowels and base[-1] not in "aeiouwxy" and len(base) > 2
    )
    return base + base[-1] if is_short_syllable else base


def german_stem(infinitive: str) -> str:
    """ "hol" of "holen", "wander" of "wandern"."""
    return infinitive.removesuffix("n").removesuffix("e")


def regular_third_person(infinitive: str) -> str:
    """ "holt", but "arbeitet" and "öffnet", which could not be spoken without the e."""
    stem = german_stem(infinitive)
    needs_e = stem.endswith(("t", "d", "ffn", "chn", "gn"))
    return stem + ("et" if needs_e else "t")


def regular_participle(infinitive: str) -> str:
    """ "geholt", but "besucht" and "repariert": only verbs stressed at the front take ge-."""
    is_stressed_later = infinitive.endswith("ieren") or infinitive.startswith(
        ("be", "emp", "ent", "er", "ver", "zer")
    )
    return ("" if is_stressed_later else "ge") + regular_third_person(infinitive)
