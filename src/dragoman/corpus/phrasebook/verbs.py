"""The verbs, and the frames that say who does what to whom, where and how.

A frame pairs a verb with subjects, objects and places that make sense with it. Its `style` says
how the object is introduced: "new" for what comes into being or changes hands ("bakes a cake"),
"known" for what is there already ("turns on the lamp"), "any" for both.
"""

from dataclasses import dataclass
from typing import Literal

from dragoman.corpus.phrasebook import adverbials as adv
from dragoman.corpus.phrasebook.meaning import Modal, Name
from dragoman.corpus.phrasebook.nouns import (
    ADULTS,
    ANIMALS,
    BELONGINGS,
    CHILDREN,
    CITIES,
    CLOTHES,
    COUNTRIES,
    DEVICES,
    DISHES,
    DRINKS,
    FOODS,
    FRIENDS,
    FRUIT,
    GROWN_UPS,
    KIN,
    LUGGAGE,
    PERSONS,
    PLANTS,
    PROFESSIONS,
    ROOMS,
    SWIMMING_SITES,
    TASKS,
    VEHICLES,
    pick,
    pick_sites,
)
from dragoman.corpus.phrasebook.words import Case, Noun, Phrase, Site, Verb, verb

Style = Literal["any", "new", "known"]
Spot = Site | Name


@dataclass(frozen=True, eq=False, slots=True)
class Frame:
    """Empty `places` and `manners` mean that none are said; `habitual` suits "every day"."""

    verb: Verb
    subjects: tuple[Noun, ...] = PERSONS
    objects: tuple[Noun, ...] = ()
    style: Style = "any"
    places: tuple[Spot, ...] = ()
    manners: tuple[Phrase, ...] = ()
    habitual: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class PrepositionalFrame:
    """A verb whose object stands behind a preposition, as in "wait for the bus"."""

    verb: Verb
    english: str
    german: str
    case: Case
    objects: tuple[Noun, ...]
    subjects: tuple[Noun, ...] = PERSONS


BE = verb("be, was, been", "sein, ist, ist gewesen", preterite="war", stative=True)
HAVE = verb("have, had, had", "haben, hat, gehabt", preterite="hatte", stative=True)
ARRIVE = verb("arrive", "an|kommen, kommt, ist angekommen")
ASK = verb("ask", "fragen")
BUY = verb("buy, bought, bought", "kaufen")
COOK = verb("cook", "kochen")
CRY = verb("cry", "weinen")
COST = verb("cost, cost, cost", "kosten", stative=True)
DRINK = verb("drink, drank, drunk", "trinken, trinkt, getrunken")
DRIVE = verb("drive, drove, driven", "fahren, fährt, ist gefahren")
EAT = verb("eat, ate, eaten", "essen, isst, gegessen")
FALL_ASLEEP = verb(
    "fall, fell, fallen", "ein|schlafen, schläft, ist eingeschlafen", particle="asleep"
)
FIND = verb("find, found, found", "finden, findet, gefunden")
FORGET = verb("forget, forgot, forgotten", "vergessen, vergisst, vergessen", stative=True)
GIVE = verb("give, gave, given", "geben, gibt, gegeben")
GO = verb("go, went, gone", "gehen, geht, ist gegangen")
HELP = verb("help", "helfen, hilft, geholfen")
INVITE = verb("invite", "ein|laden, lädt, eingeladen")
KNOW = verb("know, knew, known", "kennen, kennt, gekannt", stative=True)
KNOW_THAT = verb("know, knew, known", "wissen, weiß, gewusst", preterite="wusste", stative=True)
LEARN = verb("learn", "lernen")
LIVE = verb("live", "wohnen", stative=True)
LOSE = verb("lose, lost, lost", "verlieren, verliert, verloren")
MEET = verb("meet, met, met", "treffen, trifft, getroffen")
NEED = verb("need", "brauchen", stative=True)
PICK_UP = verb("pick", "ab|holen", particle="up")
PLAY = verb("play", "spielen")
PUT_ON = verb("put, put, put", "an|ziehen, zieht, angezogen", particle="on")
READ = verb("read, read, read", "lesen, liest, gelesen")
REPAIR = verb("repair", "reparieren")
REST = verb("rest", "aus|ruhen", reflexive=True)
RUN = verb("run, ran, run", "laufen, läuft, ist gelaufen")
SEE = verb("see, saw, seen", "sehen, sieht, gesehen", stative=True)
SELL = verb("sell, sold, sold", "verkaufen")
SLEEP = verb("sleep, slept, slept", "schlafen, schläft, geschlafen")
STAY = verb("stay", "bleiben, bleibt, ist geblieben")
SWIM = verb("swim, swam, swum", "schwimmen, schwimmt, ist geschwommen")
TAKE = verb("take, took, taken", "nehmen, nimmt, genommen")
TRAVEL = verb("travel", "reisen, reist, ist gereist")
VISIT = verb("visit", "besuchen")
WAIT = verb("wait", "warten")
WAKE_UP = verb("wake, woke, woken", "auf|wachen, wacht, ist aufgewacht", particle="up")
WASH = verb("wash", "waschen, wäscht, gewaschen")
WEAR = verb("wear, wore, worn", "tragen, trägt, getragen")
WORK = verb("work", "arbeiten")
WRITE = verb("write, wrote, written", "schreiben, schreibt, geschrieben")

INVOLUNTARY = frozenset({LOSE, WAKE_UP, FALL_ASLEEP, CRY})
"""What happens to one, so that nobody wants, promises or is allowed to do it."""
MOMENTARY = frozenset({LOSE, FIND, FORGET, WAKE_UP, FALL_ASLEEP})
"""What is over as soon as it is noticed, so that nobody is doing it now."""

WARES = pick("bag, umbrella, phone, watch, camera, ball, doll, pencil, ticket")
_CARRIED = pick("bag, umbrella, phone, watch, camera, pencil, key, ticket")

TRANSITIVE = (
    Frame(
        EAT,
        objects=FRUIT + DISHES + FOODS,
        places=pick_sites("kitchen, garden, park, restaurant, café"),
        manners=(adv.SLOWLY, adv.QUICKLY),
        habitual=True,
    ),
    Frame(
        DRINK,
        objects=DRINKS,
        places=pick_sites("kitchen, garden, café"),
        habitual=True,
    ),
    Frame(
        BUY,
        objects=FRUIT + FOODS + PLANTS,
        style="new",
        places=pick_sites("market, supermarket"),
        habitual=True,
    ),
    Frame(BUY, objects=CLOTHES + WARES + DEVICES + VEHICLES, style="new", places=CITIES),
    Frame(
        SELL,
        subjects=pick("farmer, gardener, baker, woman, man"),
        objects=FRUIT + PLANTS + pick("bread, cheese, honey, egg, potato, cake"),
        style="new",
        places=pick_sites("market"),
        habitual=True,
    ),
    Frame(
        verb("order", "bestellen"),
        objects=DISHES + pick("soup, salad, fish, coffee, tea, juice, wine, beer, lemonade"),
        style="new",
        places=pick_sites("restaurant, café, hotel"),
        subjects=GROWN_UPS,
    ),
    Frame(
        COOK,
        objects=pick("soup, potato, fish, meat, rice, egg"),
        style="new",
        places=pick_sites("kitchen"),
        subjects=GROWN_UPS,
        habitual=True,
    ),
    Frame(
        verb("bake", "backen, backt, gebacken"),
        subjects=pick("baker, mother, father, grandmother, aunt, sister, neighbor, woman"),
        objects=pick("bread, cake, roll, pizza"),
        style="new",
        places=pick_sites("kitchen, bakery"),
        habitual=True,
    ),
    Frame(
        verb("cut, cut, cut", "schneiden, schneidet, geschnitten"),
        objects=pick("bread, cheese, meat, cake, apple, tomato, sausage"),
        style="known",
        manners=(adv.SLOWLY, adv.CAREFULLY),
    ),
    Frame(
        READ,
        objects=pick("book, letter, story, poem, email, article, novel, newspaper, magazine"),
        places=pick_sites("library, garden, park, living room, café"),
        manners=(adv.SLOWLY, adv.LOUDLY),
        habitual=True,
    ),
    Frame(
        WRITE,
        objects=pick("letter, story, poem, email, article, novel, book"),
        style="new",
        places=pick_sites("library, office, café"),
        habitual=True,
    ),
    Frame(
        verb("sing, sang, sung", "singen, singt, gesungen"),
        objects=pick("song"),
        style="new",
        places=pick_sites("bathroom, church, theater"),
        manners=(adv.LOUDLY, adv.QUIETLY),
    ),
    Frame(
        SEE,
        objects=ANIMALS + pick("film, policeman, tourist, actress, singer"),
        places=pick_sites("park, village, town"),
    ),
    Frame(
        verb("open", "öffnen"),
        objects=pick("door, window, box, bottle, suitcase, bag, letter, present"),
        style="known",
        manners=(adv.SLOWLY, adv.CAREFULLY, adv.QUIETLY, adv.QUICKLY),
    ),
    Frame(
        verb("close", "schließen, schließt, geschlossen"),
        objects=pick("door, window, box, bottle, suitcase, bag"),
        style="known",
        manners=(adv.SLOWLY, adv.CAREFULLY, adv.QUIETLY, adv.QUICKLY),
    ),
    Frame(VISIT, objects=KIN + FRIENDS, places=CITIES + pick_sites("hospital"), habitual=True),
    Frame(VISIT, objects=pick("museum, castle, church, theater"), style="new", places=CITIES),
    Frame(MEET, objects=FRIENDS + ADULTS, places=pick_sites("café, park, station, cinema")),
    Frame(KNOW, objects=ADULTS + PROFESSIONS + FRIENDS, style="known"),
    Frame(
        verb("love", "lieben", stative=True),
        objects=pick("dog, cat, horse") + KIN,
        style="known",
    ),
    Frame(
        verb("call", "an|rufen, ruft, angerufen"),
        objects=KIN + FRIENDS + pick("doctor, lawyer"),
        style="known",
        habitual=True,
    ),
    Frame(
        INVITE,
        objects=KIN + FRIENDS + ADULTS,
        style="known",
        subjects=GROWN_UPS,
    ),
    Frame(
        PICK_UP,
        objects=KIN + CHILDREN + FRIENDS + pick("guest, tourist"),
        style="known",
        subjects=GROWN_UPS,
        places=pick_sites("station, airport"),
    ),
    Frame(ASK, objects=PROFESSIONS + KIN + ADULTS, style="known"),
    Frame(
        verb("understand, understood, understood", "verstehen, versteht, verstanden", stative=True),
        objects=TASKS + pick("story, poem, letter, article, film"),
        style="known",
    ),
    Frame(
        verb("look", "suchen", particle="for"),
        objects=_CARRIED + pick("book, letter, cat, dog, knife, spoon"),
        style="known",
        places=(*ROOMS, *pick_sites("park")),
    ),
    Frame(
        FIND,
        objects=_CARRIED + pick("book, letter, cat, dog, photo, ball"),
        places=(*ROOMS, *pick_sites("park, forest")),
    ),
    Frame(
        LOSE,
        objects=_CARRIED + pick("hat, scarf"),
        style="known",
        places=pick_sites("park, forest, town, station"),
    ),
    Frame(
        FORGET,
        objects=pick("bag, umbrella, key, phone, ticket, backpack, word, answer"),
        style="known",
        habitual=True,
    ),
    Frame(
        REPAIR,
        subjects=pick("mechanic, engineer, father, uncle, grandfather, neighbor, friend, man"),
        objects=VEHICLES + DEVICES + pick("clock, watch, table, chair, door"),
        style="known",
        habitual=True,
    ),
    Frame(
        WASH,
        objects=CLOTHES + pick("car, dog, horse"),
        style="known",
        subjects=GROWN_UPS,
    ),
    Frame(
        verb("clean", "putzen"),
        objects=pick("kitchen, bathroom, window, mirror, office"),
        style="known",
        habitual=True,
    ),
    Frame(
        verb("paint", "malen"),
        subjects=CHILDREN + pick("painter, student, sister, aunt, daughter"),
        objects=pick("picture, flower, house, horse, bird, lake, castle"),
        style="new",
        places=pick_sites("garden, park, school"),
    ),
    Frame(WEAR, objects=CLOTHES, habitual=True),
    Frame(
        PUT_ON,
        objects=CLOTHES,
        style="known",
        manners=(adv.SLOWLY, adv.QUICKLY),
    ),
    Frame(
        verb("carry", "tragen, trägt, getragen"),
        objects=LUGGAGE + pick("chair, table, bag"),
        style="known",
        manners=(adv.SLOWLY, adv.CAREFULLY),
    ),
    Frame(
        NEED,
        objects=CLOTHES + _CARRIED + DEVICES + VEHICLES + pick("knife, spoon, plate, chair"),
    ),
    Frame(
        HAVE,
        objects=BELONGINGS + DEVICES + VEHICLES + ANIMALS + pick("house, question"),
        style="new",
    ),
    Frame(
        verb("use", "benutzen"),
        objects=pick("computer, phone, camera, map, knife, umbrella, bicycle"),
        style="known",
        habitual=True,
    ),
    Frame(
        verb("feed, fed, fed", "füttern"),
        subjects=CHILDREN + KIN + pick("farmer, neighbor, woman"),
        objects=ANIMALS,
        style="known",
        places=pick_sites("garden, village"),
        habitual=True,
    ),
    Frame(
        verb("turn", "ein|schalten", particle="on"),
        objects=DEVICES,
        style="known",
    ),
    Frame(
        verb("turn", "aus|schalten", particle="off"),
        objects=DEVICES,
        style="known",
    ),
    Frame(
        verb("pack", "packen"),
        objects=pick("suitcase, bag, backpack"),
        style="known",
        manners=(adv.SLOWLY, adv.QUICKLY),
    ),
    Frame(
        verb("hide, hid, hidden", "verstecken"),
        objects=pick("present, key, ball, letter, chocolate, doll, phone"),
        style="known",
        places=(*ROOMS,),
    ),
    Frame(
        verb("answer", "beantworten"),
        objects=pick("question, letter, email"),
        style="known",
        manners=(adv.SLOWLY, adv.QUICKLY),
    ),
    Frame(
        verb("explain", "erklären"),
        subjects=PROFESSIONS + KIN,
        objects=TASKS,
        style="known",
        manners=(adv.SLOWLY, adv.WELL),
    ),
    Frame(
        verb("translate", "übersetzen, übersetzt, übersetzt"),
        objects=pick("sentence, word, letter, book, story, poem, article, email"),
        manners=(adv.SLOWLY, adv.QUICKLY, adv.WELL),
    ),
    Frame(
        verb("hear, heard, heard", "hören", stative=True),
        objects=ANIMALS + pick("song, radio, child, boy, girl"),
    ),
    Frame(
        verb("build, built, built", "bauen"),
        subjects=pick("engineer, father, uncle, brother, farmer, neighbor, man"),
        objects=pick("house, shelf, table, bed, cupboard"),
        style="new",
        places=pick_sites("village, garden"),
    ),
    Frame(
        verb("rent", "mieten"),
        subjects=GROWN_UPS,
        objects=pick("car, bicycle, house, motorcycle"),
        style="new",
        places=CITIES + pick_sites("airport, village"),
    ),
    Frame(
        verb("photograph", "fotografieren"),
        subjects=GROWN_UPS,
        objects=ANIMALS + pick("house, church, castle, flower, rose, actress"),
        places=pick_sites("park, village"),
    ),
)

THING_FRAMES = tuple(
    frame
    for frame in TRANSITIVE
    if not any(noun.is_person for noun in frame.objects) and frame.verb not in (HAVE, COOK)
)
PERSON_FRAMES = tuple(frame for frame in TRANSITIVE if frame.objects[-1].is_person)

DITRANSITIVE = (
    Frame(
        GIVE,
        objects=FRUIT + BELONGINGS + PLANTS + pick("book, letter, chocolate, glass, plate"),
    ),
    Frame(
        verb("show", "zeigen"),
        objects=pick("photo, picture, map, house, garden, camera, dress, letter, watch"),
        style="known",
    ),
    Frame(
        verb("send, sent, sent", "schicken"),
        objects=PLANTS + pick("letter, email, photo, present, book, picture"),
    ),
    Frame(
        verb("bring, brought, brought", "bringen, bringt, gebracht"),
        objects=FRUIT + LUGGAGE + PLANTS + DRINKS + pick("newspaper, plate, spoon, soup"),
    ),
    Frame(
        verb("lend, lent, lent", "leihen, leiht, geliehen"),
        objects=pick("book, car, bicycle, umbrella, camera, pencil, coat, suitcase, computer"),
        style="known",
    ),
    Frame(BUY, objects=WARES + CLOTHES + PLANTS, style="new"),
    Frame(verb("tell, told, told", "erzählen"), objects=pick("story"), style="any"),
    Frame(
        verb("offer", "an|bieten, bietet, angeboten"),
        objects=DRINKS + FRUIT + DISHES,
        style="new",
    ),
    Frame(WRITE, objects=pick("letter, email, poem, story"), style="new"),
    Frame(
        verb("read, read, read", "vor|lesen, liest, vorgelesen"),
        objects=pick("story, book, letter, poem, article"),
    ),
)

DATIVE = (
    Frame(HELP, objects=PERSONS, habitual=True),
    Frame(verb("thank", "danken"), objects=PERSONS),
    Frame(verb("follow", "folgen, folgt, ist gefolgt"), objects=PERSONS),
    Frame(verb("listen", "zu|hören", particle="to"), objects=PERSONS, habitual=True),
    Frame(verb("congratulate", "gratulieren"), objects=PERSONS),
    Frame(verb("trust", "vertrauen", stative=True), objects=GROWN_UPS),
    Frame(verb("believe", "glauben", stative=True), objects=PERSONS),
)

BELONG = verb("belong", "gehören, gehört, gehört", particle="to", stative=True)

_OUTINGS = pick("party, concert, journey, weekend, exam, birthday")
PREPOSITIONAL = (
    PrepositionalFrame(WAIT, "for", "auf", "accusative", PERSONS),
    PrepositionalFrame(WAIT, "for", "auf", "accusative", pick("bus, train, tram, taxi, letter")),
    PrepositionalFrame(
        verb("think, thought, thought", "denken, denkt, gedacht"),
        "of",
        "an",
        "accusative",
        KIN + FRIENDS + _OUTINGS + pick("work"),
    ),
    PrepositionalFrame(
        verb("talk", "sprechen, spricht, gesprochen"), "with", "mit", "dative", PERSONS
    ),
    PrepositionalFrame(
        verb("talk", "sprechen, spricht, gesprochen"),
        "about",
        "über",
        "accusative",
        _OUTINGS + pick("film, book, novel, article, problem, work, music"),
    ),
    PrepositionalFrame(
        verb("dream", "träumen"),
        "of",
        "von",
        "dative",
        _OUTINGS + VEHICLES + pick("house, castle, horse, dog, cat"),
    ),
    PrepositionalFrame(
        verb("laugh", "lachen"), "about", "über", "accusative", pick("film, story, photo, question")
    ),
    PrepositionalFrame(
        PLAY, "with", "mit", "dative", ANIMALS + CHILDREN + pick("ball, doll"), subjects=CHILDREN
    ),
    PrepositionalFrame(
        verb("look", "freuen", particle="forward", reflexive=True),
        "to",
        "auf",
        "accusative",
        _OUTINGS + pick("film"),
    ),
    PrepositionalFrame(
        verb("be, was, been", "interessieren", particle="interested", stative=True, reflexive=True),
        "in",
        "für",
        "accusative",
        VEHICLES + pick("music, book, novel, film, theater, picture, exercise"),
    ),
    PrepositionalFrame(
        verb("take, took, taken", "kümmern", particle="care", reflexive=True),
        "of",
        "um",
        "accusative",
        CHILDREN + ANIMALS + PLANTS + pick("grandmother, grandfather, garden, guest"),
        subjects=GROWN_UPS,
    ),
    PrepositionalFrame(
        verb("complain", "beschweren", reflexive=True),
        "about",
        "über",
        "accusative",
        pick("soup, hotel, exam, work, waiter, neighbor, boss"),
        subjects=GROWN_UPS,
    ),
)

INTRANSITIVE = (
    Frame(
        WORK,
        subjects=GROWN_UPS,
        places=(*CITIES, *pick_sites("office, garden, hospital, library, restaurant, hotel")),
        manners=(adv.HARD, adv.SLOWLY),
        habitual=True,
    ),
    Frame(
        SLEEP,
        subjects=PERSONS + pick("dog, cat"),
        places=pick_sites("living room, garden"),
        manners=(adv.WELL,),
        habitual=True,
    ),
    Frame(
        PLAY,
        subjects=CHILDREN + pick("dog, cat, son, daughter"),
        places=pick_sites("garden, park, living room, playground, beach"),
        habitual=True,
    ),
    Frame(
        verb("dance", "tanzen"),
        places=pick_sites("living room, kitchen, theater"),
        manners=(adv.WELL, adv.SLOWLY),
        habitual=True,
    ),
    Frame(
        SWIM,
        subjects=PERSONS + pick("dog, duck"),
        places=SWIMMING_SITES,
        manners=(adv.SLOWLY, adv.QUICKLY, adv.WELL),
        habitual=True,
    ),
    Frame(
        RUN,
        subjects=PERSONS + pick("dog, horse, rabbit"),
        places=pick_sites("park, forest"),
        manners=(adv.QUICKLY, adv.SLOWLY),
        habitual=True,
    ),
    Frame(
        verb("hike", "wandern, wandert, ist gewandert"),
        places=(*pick_sites("forest"), *COUNTRIES),
        habitual=True,
    ),
    Frame(WAIT, places=pick_sites("station, airport, bus stop, hotel, café")),
    Frame(
        verb("sing, sang, sung", "singen, singt, gesungen"),
        places=pick_sites("church, bathroom, theater, school"),
        manners=(adv.LOUDLY, adv.QUIETLY, adv.WELL),
        habitual=True,
    ),
    Frame(
        verb("study", "lernen"),
        subjects=CHILDREN + pick("student, son, daughter, brother, sister"),
        places=pick_sites("library, living room, garden"),
        manners=(adv.HARD,),
        habitual=True,
    ),
    Frame(
        verb("sit, sat, sat", "sitzen, sitzt, gesessen"),
        places=pick_sites("garden, café, kitchen, restaurant, park, beach"),
    ),
    Frame(LIVE, places=(*CITIES, *pick_sites("village, town"))),
    Frame(
        verb("have, had, had", "frühstücken", particle="breakfast"),
        places=pick_sites("kitchen, garden, café, hotel"),
        habitual=True,
    ),
    Frame(
        verb("go, went, gone", "ein|kaufen", particle="shopping"),
        subjects=GROWN_UPS,
        places=(*CITIES, *pick_sites("supermarket, market, town")),
        habitual=True,
    ),
    Frame(
        verb("watch", "fern|sehen, sieht, ferngesehen", particle="television"),
        places=pick_sites("living room, kitchen"),
        habitual=True,
    ),
    Frame(
        REST,
        places=pick_sites("garden, living room, park, beach, hotel"),
        habitual=True,
    ),
    Frame(
        verb("get, got, gotten", "auf|stehen, steht, ist aufgestanden", particle="up"),
        manners=(adv.SLOWLY, adv.QUICKLY),
        habitual=True,
    ),
    Frame(WAKE_UP),
    Frame(
        FALL_ASLEEP,
        manners=(adv.QUICKLY,),
        places=pick_sites("cinema, living room, theater"),
    ),
    Frame(
        ARRIVE,
        places=(*CITIES, *pick_sites("station, airport, hotel")),
        subjects=GROWN_UPS,
    ),
    Frame(verb("laugh", "lachen"), manners=(adv.LOUDLY, adv.QUIETLY)),
    Frame(CRY, subjects=CHILDREN, manners=(adv.LOUDLY, adv.QUIETLY)),
)

DEPART = verb("leave, left, left", "ab|fahren, fährt, ist abgefahren")

IDIOMS = (
    (PLAY, Phrase("football", "Fußball"), pick_sites("park, garden, school")),
    (PLAY, Phrase("the piano", "Klavier"), pick_sites("living room, church")),
    (PLAY, Phrase("the guitar", "Gitarre"), pick_sites("garden, park, café")),
    (PLAY, Phrase("cards", "Karten"), pick_sites("kitchen, living room, garden")),
    (LEARN, Phrase("German", "Deutsch"), pick_sites("school, library")),
    (verb("listen", "hören"), Phrase("to music", "Musik"), pick_sites("kitchen, garden, office")),
    (
        verb("ride, rode, ridden", "fahren, fährt, ist gefahren"),
        Phrase("a bicycle", "Fahrrad"),
        pick_sites("park, village, forest"),
    ),
)

_DESTINATIONS = pick_sites(
    "park, garden, office, kitchen, forest, town, hospital, library, church, school, theater, "
    "museum, restaurant, cinema, café, supermarket, bakery, station, airport, bus stop, beach, "
    "lake, market, playground"
)
MOTION = (
    Frame(GO, places=_DESTINATIONS, manners=(adv.SLOWLY,), habitual=True),
    Frame(
        DRIVE,
        subjects=GROWN_UPS,
        places=(*CITIES, *pick_sites("station, airport, hospital, supermarket, lake, beach")),
        manners=(adv.SLOWLY, adv.QUICKLY),
        habitual=True,
    ),
    Frame(TRAVEL, subjects=GROWN_UPS, places=(*CITIES, *COUNTRIES), manners=adv.BY_TRANSPORT),
    Frame(
        verb("fly, flew, flown", "fliegen, fliegt, ist geflogen"),
        subjects=GROWN_UPS,
        places=(*CITIES, *COUNTRIES),
        habitual=True,
    ),
    Frame(
        RUN,
        places=pick_sites("school, station, bus stop, playground, bakery, beach, lake"),
        manners=(adv.QUICKLY,),
    ),
)

# Where German says how a thing is placed, English just says that it is, or is put, somewhere.
LIE = verb("be, was, been", "liegen, liegt, gelegen", preterite="lag", stative=True)
STAND = verb("be, was, been", "stehen, steht, gestanden", preterite="stand", stative=True)
HANG = verb("hang, hung, hung", "hängen, hängt, gehangen", preterite="hing")
LAY = verb("put, put, put", "legen")
PLACE = verb("put, put, put", "stellen")
HANG_UP = verb("hang, hung, hung", "hängen")

SAY = verb("say, said, said", "sagen", stative=True)
THINK = verb("think, thought, thought", "glauben", stative=True)
HOPE = verb("hope", "hoffen", stative=True)
TRY = verb("try", "versuchen")
PROMISE = verb("promise", "versprechen, verspricht, versprochen", stative=True)
RAIN = verb("rain", "regnen")
SNOW = verb("snow", "schneien")
SHINE = verb("shine, shone, shone", "scheinen, scheint, geschienen")
THERE_IS = verb("be, was, been", "geben, gibt, gegeben", stative=True)

CAN = Modal(("can",) * 5, ("can",) * 5, "", ("kann", "kannst", "kann", "können", "können"))
HAVE_TO = Modal(
    ("have to", "have to", "has to", "have to", "have to"),
    ("do", "do", "does", "do", "do"),
    "have to",
    ("muss", "musst", "muss", "müssen", "müssen"),
)
WANT_TO = Modal(
    ("want to", "want to", "wants to", "want to", "want to"),
    ("do", "do", "does", "do", "do"),
    "want to",
    ("will", "willst", "will", "wollen", "wollen"),
)
BE_ALLOWED_TO = Modal(
    ("am allowed to", "are allowed to", "is allowed to", "are allowed to", "are allowed to"),
    ("am", "are", "is", "are", "are"),
    "allowed to",
    ("darf", "darfst", "darf", "dürfen", "dürfen"),
)
SHOULD = Modal(
    ("should",) * 5, ("should",) * 5, "", ("sollte", "solltest", "sollte", "sollten", "sollten")
)
WOULD_LIKE_TO = Modal(
    ("would like to",) * 5,
    ("would",) * 5,
    "like to",
    ("möchte", "möchtest", "möchte", "möchten", "möchten"),
)
HAD_TO = Modal(
    ("had to",) * 5, ("did",) * 5, "have to", ("musste", "musstest", "musste", "mussten", "mussten")
)
WANTED_TO = Modal(
    ("wanted to",) * 5,
    ("did",) * 5,
    "want to",
    ("wollte", "wolltest", "wollte", "wollten", "wollten"),
)
COULD = Modal(
    ("could",) * 5, ("could",) * 5, "", ("konnte", "konntest", "konnte", "konnten", "konnten")
)
PRESENT_MODALS = (CAN, HAVE_TO, WANT_TO, BE_ALLOWED_TO, SHOULD, WOULD_LIKE_TO)
PAST_MODALS = (HAD_TO, WANTED_TO, COULD)
