"""Constructions with one main clause that states something."""

from random import Random

from dragoman.corpus.phrasebook import adverbials as adv
from dragoman.corpus.phrasebook import nouns as n
from dragoman.corpus.phrasebook import verbs as v
from dragoman.corpus.phrasebook.clauses import activity, deny, tense_for, timed, with_modal
from dragoman.corpus.phrasebook.meaning import (
    Clause,
    Comparison,
    Determiner,
    Formula,
    Meaning,
    Nominal,
    NounPhrase,
    PrepositionalPhrase,
    Question,
    Tense,
)
from dragoman.corpus.phrasebook.numbers import WEEKDAYS, cardinal, dates
from dragoman.corpus.phrasebook.phrases import (
    POSSESSIVES,
    choose,
    known_person,
    location,
    maybe_adjective,
    other_person,
    owner,
    person,
    protagonist,
    thing_phrase,
)
from dragoman.corpus.phrasebook.words import Adjective, Noun, Phrase

MOODS = (n.TIRED, n.SICK, n.HUNGRY, n.THIRSTY, n.HAPPY, n.SAD, n.ANGRY, n.NERVOUS)
TRAITS = (n.FRIENDLY, n.CLEVER, n.FAMOUS, n.POLITE, n.NICE, n.STRONG, n.PUNCTUAL, n.HEALTHY)


def statement(rng: Random) -> Meaning:
    return timed(rng, activity(rng))


def denial(rng: Random) -> Meaning:
    return timed(rng, deny(activity(rng)), 0.2)


def modal_statement(rng: Random) -> Meaning:
    return with_modal(rng)


_HOMES: tuple[v.Spot, ...] = (*n.CITIES, *n.pick_sites("village, town"))
_SHORT_LASTING = frozenset({v.WORK, v.SLEEP, v.WAIT, v.PLAY, v.RUN, v.SWIM})
_LASTING_FRAMES = tuple(frame for frame in v.INTRANSITIVE if frame.verb in _SHORT_LASTING)


def duration(rng: Random) -> Meaning:
    """What has been going on for a while, which German says in the present tense."""
    subject = person(rng)
    draw = rng.random()
    if draw < 0.3:
        home = location(choose(rng, _HOMES))
        verb = choose(rng, (v.LIVE, v.WORK))
        return Clause(subject, verb, "ongoing", place=home, time=choose(rng, adv.SINCE_YEARS))
    if draw < 0.5:
        learned, companion, _ = choose(rng, v.IDIOMS[:5])
        time = choose(rng, adv.SINCE_YEARS)
        return Clause(subject, learned, "ongoing", complement=companion, time=time)
    time = choose(rng, adv.SINCE_HOURS)
    if draw < 0.75:
        frame = choose(rng, v.PREPOSITIONAL[:2])
        target = other_person(rng, frame.objects, subject)
        awaited = PrepositionalPhrase(frame.english, frame.german, frame.case, target)
        return Clause(subject, frame.verb, "ongoing", complement=awaited, time=time)
    lasting = choose(rng, _LASTING_FRAMES)
    place = location(choose(rng, lasting.places))
    return Clause(person(rng, lasting.subjects), lasting.verb, "ongoing", place=place, time=time)


_STATES: tuple[tuple[tuple[Noun, ...], tuple[Adjective, ...]], ...] = (
    (n.FOODS + n.DISHES, (n.FRESH, n.COLD, n.WARM, n.HOT, n.TASTY)),
    (n.FRUIT, (n.FRESH, n.RIPE, n.SWEET, n.CHEAP)),
    (n.DRINKS, (n.COLD, n.WARM, n.HOT, n.SWEET)),
    (n.READING, (n.LONG, n.SHORT, n.INTERESTING, n.BORING, n.FUNNY)),
    (n.TASKS, (n.DIFFICULT, n.SIMPLE, n.IMPORTANT, n.LONG, n.SHORT)),
    (n.CLOTHES, (n.NEW, n.OLD, n.EXPENSIVE, n.CHEAP, n.CLEAN, n.DIRTY, n.BEAUTIFUL)),
    (n.LUGGAGE + n.pick("bag"), (n.HEAVY, n.LIGHT, n.EMPTY, n.FULL)),
    (n.TABLEWARE, (n.CLEAN, n.DIRTY, n.BIG, n.SMALL)),
    (n.DEVICES + n.VEHICLES, (n.BROKEN, n.NEW, n.OLD, n.EXPENSIVE, n.MODERN, n.GOOD)),
    (n.VEHICLES, (n.FAST, n.SLOW, n.DIRTY, n.LOUD)),
    (n.FIXTURES[:2], (n.OPEN, n.CLOSED, n.DIRTY, n.CLEAN)),
    (n.BUILDINGS, (n.OLD, n.BEAUTIFUL, n.BIG, n.SMALL, n.QUIET, n.MODERN)),
    (
        n.pick("museum, library, restaurant, school, supermarket, bakery, café, church"),
        (n.OPEN, n.CLOSED, n.FULL),
    ),
    (n.pick("kitchen, bathroom, living room, office, street"), (n.CLEAN, n.DIRTY, n.SMALL, n.BIG)),
    (n.ANIMALS, (n.TIRED, n.HUNGRY, n.OLD, n.YOUNG, n.FAST, n.LOUD)),
    (n.PLANTS, (n.BEAUTIFUL, n.RED, n.YELLOW, n.WHITE)),
)


def description(rng: Random) -> Meaning:
    """Somebody or something is, or was, or is not, such and such."""
    subject: Nominal
    if rng.random() < 0.45:
        subject, quality = known_person(rng), choose(rng, MOODS + TRAITS)
        if isinstance(subject, NounPhrase) and subject.adjective is quality:
            subject = subject._replace(adjective=None)
    else:
        nouns, qualities = choose(rng, _STATES)
        quality = choose(rng, qualities)
        # No adjective, lest the small house be big.
        noun = choose(rng, nouns)
        subject = thing_phrase(rng, noun, style="known")._replace(adjective=None)
        if noun not in _OWNABLE:
            subject = subject._replace(owner=None)
    clause = Clause(subject, v.BE, complement=quality)
    draw = rng.random()
    if draw < 0.3:
        return timed(rng, clause._replace(tense="past"), 0.4 if quality in MOODS else 0.0)
    if draw < 0.45:
        return clause._replace(negated=True)
    return clause._replace(frequency=adv.VERY if draw < 0.6 and quality in _GRADABLE else None)


_GRADABLE = frozenset(
    {n.TIRED, n.HUNGRY, n.HAPPY, n.SAD, n.ANGRY, n.FRIENDLY, n.CLEVER, n.NICE, n.OLD, n.YOUNG}
    | {n.EXPENSIVE, n.CHEAP, n.HEAVY, n.BEAUTIFUL, n.INTERESTING, n.BORING, n.LONG, n.COLD}
    | {n.HOT, n.SWEET, n.TASTY, n.FAST, n.LOUD, n.DIFFICULT, n.IMPORTANT, n.DIRTY, n.BIG}
)

_COMPARABLE: tuple[tuple[tuple[Noun, ...], tuple[Adjective, ...]], ...] = (
    (n.DEVICES, (n.EXPENSIVE, n.CHEAP, n.MODERN, n.NEW, n.GOOD)),
    (n.VEHICLES, (n.FAST, n.SLOW, n.LOUD, n.EXPENSIVE, n.CHEAP, n.MODERN, n.OLD, n.GOOD)),
    (n.READING[:7], (n.LONG, n.SHORT, n.INTERESTING, n.BORING, n.FUNNY, n.GOOD)),
    (n.CLOTHES, (n.EXPENSIVE, n.CHEAP, n.NEW, n.BEAUTIFUL, n.SHORT, n.LONG)),
    (n.LUGGAGE, (n.HEAVY, n.LIGHT, n.BIG, n.SMALL)),
    (n.TASKS, (n.DIFFICULT, n.SIMPLE, n.IMPORTANT, n.GOOD)),
    (n.BUILDINGS, (n.BIG, n.SMALL, n.BEAUTIFUL, n.FAMOUS, n.QUIET, n.MODERN)),
)
_HUMAN_MEASURES = (n.OLD, n.YOUNG, n.TALL, n.STRONG, n.FAST, n.CLEVER, n.FRIENDLY, n.HAPPY, n.NICE)


def comparison(rng: Random) -> Meaning:
    """One thing is more so than another of its kind."""
    subject: Nominal
    than: Nominal
    if rng.random() < 0.5:
        subject, quality = protagonist(rng), choose(rng, _HUMAN_MEASURES)
        than = choose(rng, n.NAMES)
        if than is subject or rng.random() < 0.8:
            than = NounPhrase(choose(rng, n.KIN), determiner=choose(rng, POSSESSIVES))
    else:
        nouns, qualities = choose(rng, _COMPARABLE)
        quality = choose(rng, qualities)
        first, second = rng.sample(nouns, 2)
        subject = thing_phrase(rng, first, style="known")._replace(adjective=None)
        than = thing_phrase(rng, second, style="known")._replace(adjective=None)
    return Clause(subject, v.BE, complement=Comparison(quality, than))


def profession(rng: Random) -> Meaning:
    """What somebody is, in the gender that both languages can agree on."""
    is_woman = rng.random() < 0.5
    gender = "f" if is_woman else "m"
    subject: Nominal
    if rng.random() < 0.4:
        subject = choose(rng, [name for name in n.NAMES if name.gender == gender])
    else:
        kin = choose(rng, n.FEMININE_KIN if is_woman else n.MASCULINE_KIN)
        subject = NounPhrase(kin, determiner=choose(rng, POSSESSIVES))
    noun = choose(rng, n.FEMININE_PROFESSIONS if is_woman else n.MASCULINE_PROFESSIONS)
    tense: Tense = "past" if rng.random() < 0.3 else "present"
    adjective = choose(rng, (None, None, None, n.GOOD, n.FAMOUS, n.FRIENDLY, n.YOUNG))
    calling = NounPhrase(noun, determiner="a", adjective=adjective)
    return Clause(subject, v.BE, tense, complement=calling)


_LYING = n.PAPERS + n.pick(
    "book, letter, key, phone, watch, camera, ball, doll, pencil, ticket, knife, fork, spoon"
)
_STANDING = n.DEVICES[:4] + n.pick("bottle, vase, glass, cup, basket, box, suitcase")
_HANGING = n.DECORATIONS
_SPOTS: tuple[tuple[str, str, tuple[Noun, ...]], ...] = (
    ("on", "auf", n.pick("table, desk, chair, shelf, sofa, bed")),
    ("under", "unter", n.pick("table, desk, chair, bed, sofa")),
    ("next to", "neben", n.pick("table, bed, sofa, cupboard, door, window")),
    ("behind", "hinter", n.pick("door, sofa, cupboard")),
    ("in front of", "vor", n.pick("door, window, house, mirror")),
    ("in", "in", n.pick("cupboard, box, suitcase")),
)
_WALL = n.pick("wall")
_HANGING_SPOTS = (
    ("on", "an", _WALL),
    ("over", "über", n.pick("bed, sofa, desk, table, door")),
)
_POSTURES = (
    (_LYING, _SPOTS, v.LIE, v.LAY),
    (_STANDING, _SPOTS[:5], v.STAND, v.PLACE),
    (_HANGING, _HANGING_SPOTS, v.HANG, v.HANG_UP),
)


def position(rng: Random) -> Meaning:
    """Where a thing is: a two-way preposition with the dative."""
    things, spots, verb, _ = choose(rng, _POSTURES)
    english, german, supports = choose(rng, spots)
    thing = choose(rng, things)
    support = choose(rng, supports)
    spot = PrepositionalPhrase(english, german, "dative", _plain(rng, support))
    tense: Tense = "progressive" if not verb.stative else "present"
    if rng.random() < 0.3:
        tense = "past"
    clause = Clause(thing_phrase(rng, thing, style="known"), verb, tense, complement=spot)
    draw = rng.random()
    if draw < 0.2:
        return Question(clause)
    if draw < 0.35 and verb.stative:
        return Question(clause._replace(complement=None), adv.WHERE)
    return clause._replace(negated=draw > 0.85)


def placement(rng: Random) -> Meaning:
    """Where somebody puts a thing: the same preposition with the accusative."""
    things, spots, _, verb = choose(rng, _POSTURES)
    english, german, supports = choose(rng, spots)
    subject = person(rng)
    spot = PrepositionalPhrase(english, german, "accusative", _plain(rng, choose(rng, supports)))
    clause = Clause(
        subject,
        verb,
        tense_for(rng, verb, subject, False),
        accusative=thing_phrase(rng, choose(rng, things), subject),
        complement=spot,
    )
    if rng.random() < 0.2:
        modal = choose(rng, v.PRESENT_MODALS)
        return clause._replace(modal=modal, tense="future")
    return timed(rng, clause, 0.2)


def _plain(rng: Random, noun: Noun) -> NounPhrase:
    return NounPhrase(noun, adjective=maybe_adjective(rng, noun, 0.2))


_AREAS = n.pick("town, village, street")
_ESTABLISHMENTS = n.pick("school, theater, museum, hotel, restaurant, library, church, cinema")


def existence(rng: Random) -> Meaning:
    """There is something in town."""
    determiner: Determiner = choose(rng, ("the", "this", "my", "your", "our", "their"))
    area = NounPhrase(choose(rng, _AREAS), determiner=determiner)
    noun = choose(rng, _ESTABLISHMENTS)
    clause = Clause(
        n.THERE,
        v.THERE_IS,
        accusative=NounPhrase(noun, False, "a", maybe_adjective(rng, noun, 0.5)),
        place=PrepositionalPhrase("in", "in", "dative", area),
    )
    return Question(clause) if rng.random() < 0.35 else clause


_OWNABLE = n.CLOTHES + n.BELONGINGS + n.VEHICLES + n.LUGGAGE + n.ANIMALS + n.DEVICES[:-1]


def possession(rng: Random) -> Meaning:
    """Whose a thing is."""
    noun = choose(rng, _OWNABLE)
    determiner: Determiner = "this" if rng.random() < 0.5 else "the"
    plural = rng.random() < 0.2
    thing = NounPhrase(noun, plural, determiner, maybe_adjective(rng, noun, 0.4))
    belongs_to = choose(rng, n.NAMES) if rng.random() < 0.2 else other_person(rng, n.PERSONS, thing)
    clause = Clause(thing, v.BELONG, dative=belongs_to)
    draw = rng.random()
    if draw < 0.2:
        return Question(clause)
    return clause._replace(negated=draw > 0.85)


_AGES = tuple(
    Phrase(f"{number.english} years old", f"{number.german} Jahre alt")
    for number in map(cardinal, range(100))
)
_PRICES = tuple(
    Phrase(f"{number.english} euros", f"{number.german} Euro")
    for number in map(cardinal, range(2, 100))
)
_YOUNGSTERS = frozenset(n.CHILDREN + n.pick("son, daughter"))
_GRANDPARENTS = frozenset(n.pick("grandmother, grandfather"))
GOODS = (
    n.CLOTHES
    + n.LUGGAGE
    + n.TABLEWARE
    + n.pick("bag, umbrella, phone, watch, camera, ball, doll, ticket, book, lamp, radio")
)


def age(rng: Random) -> Meaning:
    """How old somebody is, within what is likely for a child, a worker or a grandparent."""
    subject = known_person(rng)
    youngest, oldest = 2, 99
    if isinstance(subject, NounPhrase):
        subject = subject._replace(adjective=None)
        if subject.noun in _YOUNGSTERS:
            youngest, oldest = 2, 15
        elif subject.noun in _GRANDPARENTS:
            youngest, oldest = 55, 99
        else:
            youngest, oldest = 20, 65
    return Clause(subject, v.BE, complement=choose(rng, _AGES[youngest : oldest + 1]))


def price(rng: Random) -> Meaning:
    noun = choose(rng, GOODS)
    determiner: Determiner = "this" if rng.random() < 0.4 else "the"
    adjective = maybe_adjective(rng, noun, 0.35)
    thing = NounPhrase(noun, rng.random() < 0.2, determiner, adjective)
    return Clause(thing, v.COST, complement=choose(rng, _PRICES))


def departure(rng: Random) -> Meaning:
    """The timetable, where German separates its verbs."""
    vehicle = choose(rng, n.pick("bus, train, tram, ship"))
    verb = choose(rng, (v.DEPART, v.ARRIVE))
    tense: Tense = choose(rng, ("present", "present", "past", "future"))
    determiner: Determiner = choose(rng, ("the", "the", "this", "our"))
    subject = NounPhrase(vehicle, determiner=determiner)
    draw = rng.random()
    if draw < 0.15:
        return Question(Clause(subject, verb, tense), adv.WHEN)
    time = choose(rng, adv.AT_CLOCK_TIMES)
    clause = Clause(subject, verb, tense, time=time, front="time" if draw < 0.4 else "")
    return Question(clause) if draw > 0.85 else clause


def birthday(rng: Random) -> Meaning:
    (noun,) = n.pick("birthday")
    subject = NounPhrase(noun, owner=owner(rng))
    if rng.random() < 0.3:
        subject = NounPhrase(noun, determiner=choose(rng, POSSESSIVES[:4]))
    return Clause(subject, v.BE, complement=choose(rng, adv.ON_DATES))


_DATES = dates("e")


def calendar(rng: Random) -> Meaning:
    """The time of day, the weekday and the date."""
    draw = rng.random()
    if draw < 0.5:
        time = choose(rng, adv.CLOCK_TIMES)
        return Formula(
            f"it is {time.english}", f"es ist {time.german}", tuple(time.english.split())
        )
    english, german = choose(
        rng,
        (
            Phrase("today is", "heute ist"),
            Phrase("tomorrow is", "morgen ist"),
            Phrase("yesterday was", "gestern war"),
        ),
    )
    if draw < 0.6:
        day = choose(rng, WEEKDAYS)
        return Formula(f"{english} {day.english}", f"{german} {day.german}", (english, day.english))
    day = choose(rng, _DATES)
    return Formula(f"{english} {day.english}", f"{german} der {day.german}", (day.english,))
