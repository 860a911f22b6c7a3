"""Constructions of two clauses: reasons, conditions, reports, aims, contrasts."""

from random import Random

from dragoman.corpus.phrasebook import adverbials as adv
from dragoman.corpus.phrasebook import nouns as n
from dragoman.corpus.phrasebook import verbs as v
from dragoman.corpus.phrasebook.clauses import (
    PRESENT_TENSES,
    activity,
    be,
    deny,
    frame_for,
    timed,
    transitive,
    with_modal,
    with_object,
)
from dragoman.corpus.phrasebook.english import person_of
from dragoman.corpus.phrasebook.meaning import (
    Clause,
    Complement,
    Compound,
    Meaning,
    Nominal,
    NounPhrase,
    PrepositionalPhrase,
    Pronoun,
    Tense,
)
from dragoman.corpus.phrasebook.phrases import (
    asked_about,
    choose,
    destination,
    known_person,
    location,
    maybe_adjective,
    other_person,
    person,
    possessive_of,
    pronoun_for,
    protagonist,
    thing_phrase,
)
from dragoman.corpus.phrasebook.statements import MOODS, TRAITS
from dragoman.corpus.phrasebook.words import Noun, Phrase, Verb


def weather(rng: Random, tense: Tense = "progressive") -> Clause:
    """Rain, snow, sunshine, cold or heat."""
    draw = rng.random()
    be_tense: Tense = "present" if tense == "progressive" else tense
    if draw < 0.5:
        return Clause(n.IT, choose(rng, (v.RAIN, v.SNOW)), tense)
    if draw < 0.8:
        quality = choose(rng, (n.COLD, n.WARM, n.HOT))
        return Clause(n.IT, v.BE, be_tense, complement=quality)
    return Clause(NounPhrase(n.SUN), v.SHINE, tense)


def weather_report(rng: Random) -> Meaning:
    tense: Tense = choose(rng, ("progressive", "past", "future"))
    clause = weather(rng, tense)
    if rng.random() < 0.6:
        clause = clause._replace(place=location(choose(rng, n.CITIES + n.COUNTRIES)))
    return timed(rng, clause, 0.7)


def bad_weather(rng: Random) -> Clause:
    if rng.random() < 0.4:
        return be(n.IT, n.COLD)
    return Clause(n.IT, choose(rng, (v.RAIN, v.SNOW)), "progressive")


_ERRANDS: tuple[tuple[tuple[v.Spot, ...], Verb, tuple[Noun, ...]], ...] = (
    (n.pick_sites("market, supermarket"), v.BUY, n.FRUIT + n.FOODS + n.PLANTS),
    (n.pick_sites("kitchen"), v.COOK, n.pick("soup, potato, fish, meat, rice, egg")),
    (n.pick_sites("library, park, garden"), v.READ, n.pick("book, novel, newspaper, magazine")),
    (n.pick_sites("café, kitchen, restaurant"), v.DRINK, n.DRINKS),
    (n.pick_sites("restaurant, kitchen, café"), v.EAT, n.DISHES + n.pick("soup, salad, bread")),
    (n.pick_sites("station, airport"), v.PICK_UP, n.KIN + n.FRIENDS),
    (n.pick_sites("park, café, cinema"), v.MEET, n.FRIENDS),
    (n.pick_sites("hospital"), v.VISIT, n.KIN + n.FRIENDS),
    (n.pick_sites("bakery"), v.BUY, n.pick("bread, cake, roll")),
)


def errand(rng: Random) -> Meaning:
    """Somebody goes somewhere because of what one does there."""
    spots, verb, nouns = choose(rng, _ERRANDS)
    subject = protagonist(rng)
    tense: Tense = choose(rng, ("progressive", "past"))
    main = Clause(subject, v.GO, tense, complement=destination(choose(rng, spots)))
    again = pronoun_for(subject)
    aim = Clause(
        again,
        verb,
        modal=v.WANT_TO if tense == "progressive" else v.WANTED_TO,
        accusative=thing_phrase(rng, choose(rng, nouns), again, "new"),
    )
    return Compound(main, adv.BECAUSE, aim)


AT_HOME = Phrase("at home", "zu Hause")
_EFFORTS = tuple(
    frame
    for frame in v.INTRANSITIVE
    if frame.verb.english in ("work", "dance", "swim", "run", "hike", "study", "go")
)
_OUTDOOR_EFFORTS = tuple(
    frame for frame in v.INTRANSITIVE if frame.verb.english in ("swim", "run", "hike")
)


def rest_or_effort(rng: Random) -> Meaning:
    """Staying at home for a reason, or going on against it."""
    subject = protagonist(rng)
    is_outdoors = rng.random() < 0.35
    state = choose(rng, (n.TIRED, n.SICK))
    reason = bad_weather(rng) if is_outdoors else be(pronoun_for(subject), state)
    if rng.random() < 0.45:
        rest = choose(
            rng,
            (
                Clause(subject, v.STAY, "progressive", complement=AT_HOME),
                deny(Clause(subject, v.WORK, "progressive", time=Phrase("today", "heute"))),
                Clause(subject, v.GO, "progressive", negated=True, complement=_walk(rng)),
            ),
        )
        return _perhaps_reversed(rng, Compound(rest, adv.BECAUSE, reason))
    if rng.random() < 0.4:
        effort = Clause(subject, v.GO, complement=_walk(rng))
    else:
        frame = frame_for(rng, _OUTDOOR_EFFORTS if is_outdoors else _EFFORTS, subject)
        effort = Clause(subject, frame.verb, place=location(choose(rng, frame.places)))
    effort = effort._replace(tense="progressive", manner=None)
    return _perhaps_reversed(rng, Compound(effort, adv.ALTHOUGH, reason))


def _walk(rng: Random) -> PrepositionalPhrase:
    return destination(choose(rng, v.MOTION[0].places))


def _perhaps_reversed(rng: Random, compound: Compound) -> Compound:
    """Some with the subordinate clause first, which then has the noun, the other the pronoun."""
    if rng.random() > 0.35:
        return compound
    main, subordinate = compound.first, compound.second
    if subordinate.subject == pronoun_for(main.subject):
        main, subordinate = (
            main._replace(subject=subordinate.subject),
            subordinate._replace(subject=main.subject),
        )
    return Compound(main, compound.conjunction, subordinate, subordinate_first=True)


def clothing(rng: Random) -> Meaning:
    """What one wears in the cold."""
    subject = person(rng)
    (umbrella,) = n.pick("umbrella")
    if rng.random() < 0.25:
        possessive = possessive_of(subject) or "a"
        gear = NounPhrase(umbrella, person_of(subject) >= 3, possessive)
        reason = Clause(n.IT, choose(rng, (v.RAIN, v.SNOW)), "progressive")
        modal = choose(rng, (v.HAVE_TO, v.SHOULD, v.WANT_TO, v.WOULD_LIKE_TO))
        return Compound(Clause(subject, v.TAKE, modal=modal, accusative=gear), adv.BECAUSE, reason)
    noun = choose(rng, n.pick("coat, jacket, scarf, sweater, hat"))
    gear = NounPhrase(
        noun,
        person_of(subject) >= 3,
        possessive_of(subject) or "a",
        choose(rng, (n.WARM, n.NEW, None)),
    )
    verb = choose(rng, (v.WEAR, v.PUT_ON))
    main = Clause(subject, verb, "progressive", accusative=gear)
    return _perhaps_reversed(rng, Compound(main, adv.BECAUSE, bad_weather(rng)))


def appetite(rng: Random) -> Meaning:
    """Eating and drinking, with and without need."""
    subject = protagonist(rng)
    drinks = rng.random() < 0.4
    nouns = n.DRINKS if drinks else n.FRUIT + n.DISHES + n.FOODS
    tense: Tense = "progressive" if rng.random() < 0.6 else "past"
    consumed = thing_phrase(rng, choose(rng, nouns), subject, "new")
    main = Clause(subject, v.DRINK if drinks else v.EAT, tense, accusative=consumed)
    need = be(pronoun_for(subject), n.THIRSTY if drinks else n.HUNGRY)
    if tense == "past":
        need = need._replace(tense="past")
    if rng.random() < 0.3:
        return Compound(main, adv.ALTHOUGH, need._replace(negated=True))
    return Compound(main, adv.BECAUSE, need)


def purchase(rng: Random) -> Meaning:
    """Buying things for what they are, or in spite of it; only in the plural, where German
    things have one pronoun."""
    subject = person(rng)
    food = rng.random() < 0.4
    noun = choose(rng, n.FRUIT if food else n.CLOTHES + v.WARES + n.TABLEWARE)
    goods = NounPhrase(noun, True, "this" if rng.random() < 0.4 else "the")
    modal = choose(rng, (None, v.WANT_TO, v.WOULD_LIKE_TO))
    is_because = rng.random() < 0.55
    if is_because:
        quality = choose(rng, (n.FRESH, n.SWEET, n.CHEAP) if food else (n.CHEAP, n.BEAUTIFUL))
    else:
        quality = n.EXPENSIVE
    main = Clause(subject, v.BUY, "progressive", modal, accusative=goods)
    reason = be(n.THEY, quality)
    return Compound(main, adv.BECAUSE if is_because else adv.ALTHOUGH, reason)


def care(rng: Random) -> Meaning:
    """Helping or visiting somebody who needs it."""
    subject = person(rng)
    noun = choose(rng, n.KIN + n.FRIENDS)
    who = NounPhrase(noun, False, possessive_of(subject) or "my")
    quality = choose(rng, (n.SICK, n.SAD, n.TIRED))
    frame = choose(rng, (v.HELP, v.VISIT, v.HELP))
    tense: Tense = choose(rng, ("progressive", "past", "future"))
    main = Clause(subject, frame, tense)
    main = main._replace(dative=who) if frame is v.HELP else main._replace(accusative=who)
    reason = be(pronoun_for(who), quality)
    if tense == "past":
        reason = reason._replace(tense="past")
    return Compound(main, adv.BECAUSE, reason)


def feeling(rng: Random) -> Meaning:
    """Joy at finding and grief at losing."""
    subject = protagonist(rng)
    again = pronoun_for(subject)
    is_joy = rng.random() < 0.5
    verb = v.FIND if is_joy else v.LOSE
    mood = n.HAPPY if is_joy else choose(rng, (n.SAD, n.ANGRY))
    noun = choose(rng, n.pick("bag, umbrella, phone, watch, camera, pencil, key, ticket"))
    is_shared = again.person >= 3
    thing = NounPhrase(noun, is_shared, again.possessive, maybe_adjective(rng, noun, 0.2))
    return _perhaps_reversed(
        rng,
        Compound(be(subject, mood), adv.BECAUSE, Clause(again, verb, "past", accusative=thing)),
    )


_FAIR_WEATHER_SITES = n.pick_sites("park, garden, forest, beach, lake, playground")
_FAIR_WEATHER_FRAMES = tuple(
    frame for frame in v.INTRANSITIVE if frame.verb.english in ("swim", "run", "hike")
)
_LEISURE_FRAMES = tuple(
    frame for frame in v.TRANSITIVE if frame.verb in (v.READ, v.WRITE, v.COOK, v.VISIT, v.INVITE)
)
_HOME = Phrase("home", "nach Hause")


def condition(rng: Random) -> Meaning:
    """What will be, can be or should be done if something is so."""
    draw = rng.random()
    subject = protagonist(rng)
    again = pronoun_for(subject)
    if draw < 0.3:
        given = _fair_weather(rng)
        frame = choose(rng, _FAIR_WEATHER_FRAMES)
        outing = choose(
            rng,
            (
                Clause(subject, frame.verb, place=location(choose(rng, frame.places))),
                Clause(subject, v.GO, complement=destination(choose(rng, _FAIR_WEATHER_SITES))),
            ),
        )
        return _perhaps_reversed(rng, Compound(outing._replace(tense="future"), adv.IF, given))
    if draw < 0.55:
        given = choose(rng, (Clause(n.IT, v.RAIN), Clause(n.IT, v.SNOW), be(n.IT, n.COLD)))
        indoors = _indoors(rng, subject)._replace(tense="future")
        return _perhaps_reversed(rng, Compound(indoors, adv.IF, given))
    if draw < 0.8:
        (time,) = n.pick("time")
        given = Clause(again, v.HAVE, accusative=NounPhrase(time, determiner="bare"))
        if rng.random() < 0.4:
            result = Clause(subject, v.HELP, dative=other_person(rng, n.PERSONS, subject))
        else:
            result = with_object(rng, frame_for(rng, _LEISURE_FRAMES, subject), subject)
        result = result._replace(tense="future", modal=choose(rng, (None, v.CAN, v.SHOULD)))
    else:
        given = be(again, choose(rng, (n.TIRED, n.SICK, n.SAD)))
        result = _indoors(rng, subject)._replace(modal=choose(rng, (v.CAN, v.SHOULD)))
    return _perhaps_reversed(rng, Compound(result._replace(manner=None, front=""), adv.IF, given))


def _fair_weather(rng: Random) -> Clause:
    if rng.random() < 0.5:
        return Clause(NounPhrase(n.SUN), v.SHINE)
    return be(n.IT, choose(rng, (n.WARM, n.HOT)))


def _indoors(rng: Random, subject: Nominal) -> Clause:
    """What one does at home."""
    verb, companion, _ = choose(rng, v.IDIOMS[1:6])
    return choose(
        rng,
        (
            Clause(subject, v.STAY, complement=AT_HOME),
            Clause(subject, v.GO, complement=_HOME),
            Clause(subject, v.SLEEP),
            Clause(subject, v.REST),
            Clause(subject, verb, complement=companion),
        ),
    )


def report(rng: Random) -> Meaning:
    """What somebody says, knows, thinks or hopes."""
    speaker, subject = person(rng), known_person(rng)
    while {speaker, subject} == {n.SPEAKER, n.WE}:
        subject = known_person(rng)
    draw = rng.random()
    if draw < 0.2:
        hoped = activity(rng, subject)
        while hoped.verb.stative or hoped.verb in v.INVOLUNTARY:
            hoped = activity(rng, subject)
        hoped = hoped._replace(tense="future", manner=None)
        return Compound(
            Clause(speaker, v.HOPE), adv.THAT, timed(rng, hoped, 0.3)._replace(front="")
        )
    if draw < 0.4:
        content = be(subject, choose(rng, MOODS + TRAITS))
    elif draw < 0.55:
        content = with_modal(rng, subject)
    else:
        content = timed(rng, activity(rng, subject), 0.25)
    content = _learnable_at_end(content)
    is_past = content.tense == "past" and content.modal is None and rng.random() < 0.4
    verb = choose(rng, (v.SAY, v.KNOW_THAT, v.THINK))
    main = Clause(speaker, verb, "past" if is_past else "present")
    return Compound(main, adv.THAT, content._replace(front=""))


def uncertainty(rng: Random) -> Meaning:
    """What somebody asks, or does not know."""
    asker, subject = person(rng), asked_about(rng)
    while asker == subject:
        subject = asked_about(rng)
    content = timed(rng, _learnable_at_end(activity(rng, subject)), 0.3)
    main = choose(
        rng,
        (
            Clause(asker, v.ASK, "progressive"),
            Clause(asker, v.KNOW_THAT, "present", negated=True),
            Clause(asker, v.KNOW_THAT, modal=v.WOULD_LIKE_TO),
        ),
    )
    return Compound(main, adv.WHETHER, content._replace(front=""))


def _learnable_at_end(clause: Clause) -> Clause:
    """Turns the rarest verb forms, such as "anrufst" in one word, into the past."""
    is_rare = clause.verb.prefix and clause.subject in (n.SPEAKER, n.YOU)
    if is_rare and clause.modal is None and clause.tense in PRESENT_TENSES:
        return clause._replace(tense="past", frequency=None, time=None)
    return clause


def intention(rng: Random) -> Meaning:
    """Infinitives with "zu"."""
    subject = person(rng)
    verb, tenses = choose(rng, _INTENTIONS)
    aim = transitive(rng, subject)
    while (
        aim.verb.stative
        or aim.verb in v.INVOLUNTARY
        or (verb is v.HOPE and aim.verb not in (v.BUY, v.FIND, v.MEET, v.VISIT, v.SELL))
    ):
        aim = transitive(rng, subject)
    aim = aim._replace(manner=None, place=None, front="", tense="present")
    return Clause(subject, verb, choose(rng, tenses), infinitive=aim)


_INTENTIONS: tuple[tuple[Verb, tuple[Tense, ...]], ...] = (
    (v.TRY, ("progressive", "past", "future")),
    (v.FORGET, ("past",)),
    (v.PROMISE, ("past",)),
    (v.HOPE, ("present",)),
)


def contrast(rng: Random) -> Meaning:
    """Two people do alike, each with something else."""
    tense: Tense = choose(rng, ("progressive", "past"))
    frame = choose(rng, _CONTRASTED_FRAMES)
    first, second = (_brief(rng, frame, tense) for _ in range(2))
    while not _is_contrast(first, second):
        second = _brief(rng, frame, tense)
    return Compound(first, choose(rng, (adv.AND, adv.BUT)), second, subordinate=False)


_CONTRASTED_FRAMES = tuple(
    frame
    for frame in (*v.THING_FRAMES, *v.MOTION)
    if not frame.verb.stative and frame.verb not in v.MOMENTARY and len(frame.objects) != 1
)


def _is_contrast(first: Clause, second: Clause) -> bool:
    """Others do something else; a pronoun beside a noun would seem to stand for it."""
    if first.subject == second.subject or _aim(first) == _aim(second):
        return False
    return isinstance(first.subject, Pronoun) == isinstance(second.subject, Pronoun)


def _aim(clause: Clause) -> Noun | Complement | None:
    thing = clause.accusative
    return thing.noun if isinstance(thing, NounPhrase) else clause.complement


def _brief(rng: Random, frame: v.Frame, tense: Tense) -> Clause:
    subject = person(rng, frame.subjects)
    if frame in v.MOTION:
        place = destination(choose(rng, frame.places))
        return Clause(subject, frame.verb, tense, complement=place)
    thing = thing_phrase(rng, choose(rng, frame.objects), subject, frame.style)
    return Clause(subject, frame.verb, tense, accusative=thing)
