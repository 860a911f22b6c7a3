"""Meanings with the English and the German that a person would write for them."""

from dragoman.corpus.phrasebook import adverbials as adv
from dragoman.corpus.phrasebook import nouns as n
from dragoman.corpus.phrasebook import verbs as v
from dragoman.corpus.phrasebook.meaning import (
    Clause,
    Comparison,
    Compound,
    Determiner,
    Gap,
    Meaning,
    Nominal,
    NounPhrase,
    PrepositionalPhrase,
    Question,
    RelativeClause,
)
from dragoman.corpus.phrasebook.numbers import cardinal
from dragoman.corpus.phrasebook.phrases import destination, location
from dragoman.corpus.phrasebook.words import Adjective, Case, Noun, Phrase, Verb


def noun(word: str) -> Noun:
    return n.pick(word)[0]


def the(
    word: str, adjective: Adjective | None = None, determiner: Determiner = "the"
) -> NounPhrase:
    return NounPhrase(noun(word), False, determiner, adjective)


def a(word: str, adjective: Adjective | None = None) -> NounPhrase:
    return the(word, adjective, "a")


def many(
    word: str, adjective: Adjective | None = None, determiner: Determiner = "the"
) -> NounPhrase:
    return NounPhrase(noun(word), True, determiner, adjective)


def verb(infinitive: str) -> Verb:
    frames = (*v.TRANSITIVE, *v.DITRANSITIVE, *v.DATIVE, *v.PREPOSITIONAL, *v.INTRANSITIVE)
    return next(
        frame.verb for frame in frames if frame.verb.prefix + frame.verb.infinitive == infinitive
    )


def at(word: str) -> PrepositionalPhrase:
    return location(n.pick_sites(word)[0])


def to(word: str) -> PrepositionalPhrase:
    return destination(n.pick_sites(word)[0])


def on(english_word: str, german_word: str, case: Case, thing: Nominal) -> PrepositionalPhrase:
    return PrepositionalPhrase(english_word, german_word, case, thing)


ANNA, PAUL = n.NAMES[0], n.NAMES[5]
BERLIN = n.CITIES[0]
YESTERDAY = Phrase("yesterday", "gestern")
TODAY = Phrase("today", "heute")
THREE = cardinal(3)
HALF_PAST_THREE = Phrase("at half past three", "um halb vier")

GOLDEN: list[tuple[Meaning, str, str]] = [
    # Articles and adjectives in the accusative
    (
        Clause(the("baker"), verb("backen"), "progressive", accusative=a("cake", n.FRESH)),
        "The baker is baking a fresh cake.",
        "Der Bäcker backt einen frischen Kuchen.",
    ),
    (
        Clause(n.SHE, v.READ, "progressive", accusative=a("book", n.INTERESTING)),
        "She is reading an interesting book.",
        "Sie liest ein interessantes Buch.",
    ),
    (
        Clause(n.HE, v.WEAR, "progressive", accusative=the("coat", n.BLACK)),
        "He is wearing the black coat.",
        "Er trägt den schwarzen Mantel.",
    ),
    (
        Clause(n.WE, v.BUY, "past", accusative=many("apple", n.RIPE, "bare")),
        "We bought ripe apples.",
        "Wir haben reife Äpfel gekauft.",
    ),
    (
        Clause(n.THEY, v.DRINK, "progressive", accusative=the("milk", n.COLD, "bare")),
        "They are drinking cold milk.",
        "Sie trinken kalte Milch.",
    ),
    (
        Clause(
            ANNA,
            v.DRINK,
            "progressive",
            accusative=NounPhrase(noun("cup"), False, "a", content=noun("coffee")),
        ),
        "Anna is drinking a cup of coffee.",
        "Anna trinkt eine Tasse Kaffee.",
    ),
    (
        Clause(
            PAUL,
            v.BUY,
            "future",
            accusative=NounPhrase(noun("egg"), True, "bare", None, THREE),
        ),
        "Paul will buy three eggs.",
        "Paul wird drei Eier kaufen.",
    ),
    # Possessives and the genitive
    (
        Clause(n.SPEAKER, v.VISIT, "progressive", accusative=the("uncle", None, "my")),
        "I am visiting my uncle.",
        "Ich besuche meinen Onkel.",
    ),
    (
        Clause(
            n.HE,
            v.REPAIR,
            "past",
            accusative=NounPhrase(noun("car"), owner=the("father", None, "my")),
        ),
        "He repaired my father's car.",
        "Er hat das Auto meines Vaters repariert.",
    ),
    (
        Clause(
            n.SHE, v.FIND, "past", accusative=NounPhrase(noun("bag"), adjective=n.NEW, owner=ANNA)
        ),
        "She found Anna's new bag.",
        "Sie hat Annas neue Tasche gefunden.",
    ),
    (
        Clause(the("boy"), v.LOSE, "past", accusative=the("key", None, "his")),
        "The boy lost his key.",
        "Der Junge hat seinen Schlüssel verloren.",
    ),
    # The dative
    (
        Clause(n.YOU, v.HELP, "progressive", dative=the("neighbor", None, "our")),
        "You are helping our neighbor.",
        "Du hilfst unserem Nachbarn.",
    ),
    (
        Clause(the("child"), v.HELP, "past", dative=many("woman", n.OLD)),
        "The child helped the old women.",
        "Das Kind hat den alten Frauen geholfen.",
    ),
    (
        Clause(
            the("mother", None, "her"),
            v.GIVE,
            "progressive",
            dative=the("girl"),
            accusative=a("apple"),
        ),
        "Her mother is giving the girl an apple.",
        "Ihre Mutter gibt dem Mädchen einen Apfel.",
    ),
    (
        Clause(n.HE, v.GIVE, "past", dative=n.SPEAKER, accusative=the("letter"), time=YESTERDAY),
        "He gave me the letter yesterday.",
        "Er hat mir gestern den Brief gegeben.",
    ),
    (
        Clause(the("watch", None, "this"), v.BELONG, dative=the("doctor")),
        "This watch belongs to the doctor.",
        "Diese Uhr gehört der Ärztin.",
    ),
    (
        Clause(many("student"), verb("folgen"), "past", dative=n.HE),
        "The students followed him.",
        "Die Studenten sind ihm gefolgt.",
    ),
    # The verb comes second, whatever comes first
    (
        Clause(ANNA, v.WRITE, "past", accusative=a("poem"), time=YESTERDAY, front="time"),
        "Yesterday Anna wrote a poem.",
        "Gestern hat Anna ein Gedicht geschrieben.",
    ),
    (
        Clause(
            the("cook"),
            v.COOK,
            "progressive",
            accusative=the("soup"),
            place=at("kitchen"),
            front="place",
        ),
        "In the kitchen the cook is cooking the soup.",
        "In der Küche kocht der Koch die Suppe.",
    ),
    (
        Clause(
            n.SHE,
            v.BUY,
            "past",
            accusative=many("flower", None, "bare"),
            place=at("market"),
            time=YESTERDAY,
        ),
        "She bought flowers at the market yesterday.",
        "Sie hat gestern auf dem Markt Blumen gekauft.",
    ),
    (
        Clause(n.HE, verb("öffnen"), "past", accusative=the("door"), manner=adv.CAREFULLY),
        "He opened the door carefully.",
        "Er hat vorsichtig die Tür geöffnet.",
    ),
    # Frequency
    (
        Clause(
            n.SPEAKER, v.DRINK, accusative=the("tea", None, "bare"), frequency=adv.FREQUENCIES[0]
        ),
        "I often drink tea.",
        "Ich trinke oft Tee.",
    ),
    (
        Clause(
            n.SHE,
            verb("anrufen"),
            accusative=the("mother", None, "her"),
            frequency=adv.FREQUENCIES[0],
        ),
        "She often calls her mother.",
        "Sie ruft ihre Mutter oft an.",
    ),
    (
        Clause(PAUL, v.READ, "perfect", accusative=the("novel"), frequency=adv.ALREADY),
        "Paul has already read the novel.",
        "Paul hat den Roman schon gelesen.",
    ),
    (
        Clause(n.YOU, v.READ, "liking", accusative=many("story", n.FUNNY, "bare")),
        "You like to read funny stories.",
        "Du liest gern lustige Geschichten.",
    ),
    # Motion, location and two-way prepositions
    (
        Clause(many("child"), v.GO, "past", complement=to("school")),
        "The children went to the school.",
        "Die Kinder sind in die Schule gegangen.",
    ),
    (
        Clause(n.SPEAKER, v.GO, "progressive", complement=to("station")),
        "I am going to the station.",
        "Ich gehe zum Bahnhof.",
    ),
    (
        Clause(n.WE, v.GO, "future", complement=to("bus stop")),
        "We will go to the bus stop.",
        "Wir werden zur Haltestelle gehen.",
    ),
    (
        Clause(n.SHE, v.GO, "progressive", complement=to("cinema")),
        "She is going to the cinema.",
        "Sie geht ins Kino.",
    ),
    (
        Clause(n.HE, v.DRIVE, "past", complement=destination(BERLIN)),
        "He drove to Berlin.",
        "Er ist nach Berlin gefahren.",
    ),
    (
        Clause(n.THEY, v.WAIT, "progressive", place=at("airport")),
        "They are waiting at the airport.",
        "Sie warten am Flughafen.",
    ),
    (
        Clause(the("book"), v.LIE, complement=on("on", "auf", "dative", the("table"))),
        "The book is on the table.",
        "Das Buch liegt auf dem Tisch.",
    ),
    (
        Clause(
            n.SHE,
            v.LAY,
            "past",
            accusative=the("book"),
            complement=on("on", "auf", "accusative", the("table")),
        ),
        "She put the book on the table.",
        "Sie hat das Buch auf den Tisch gelegt.",
    ),
    (
        Clause(
            many("bottle"), v.STAND, "past", complement=on("in", "in", "dative", the("cupboard"))
        ),
        "The bottles were in the cupboard.",
        "Die Flaschen standen im Schrank.",
    ),
    (
        Clause(
            n.HE,
            v.HANG_UP,
            "progressive",
            accusative=the("picture"),
            complement=on("on", "an", "accusative", the("wall")),
        ),
        "He is hanging the picture on the wall.",
        "Er hängt das Bild an die Wand.",
    ),
    (
        Clause(
            the("aunt", None, "my"),
            verb("denken"),
            "progressive",
            complement=on("of", "an", "accusative", the("weekend")),
        ),
        "My aunt is thinking of the weekend.",
        "Meine Tante denkt ans Wochenende.",
    ),
    (
        Clause(
            n.SPEAKER,
            verb("freuen"),
            "progressive",
            complement=on("to", "auf", "accusative", the("party")),
        ),
        "I am looking forward to the party.",
        "Ich freue mich auf die Party.",
    ),
    # Negation
    (
        Clause(n.HE, v.HAVE, negated=True, accusative=a("car")),
        "He does not have a car.",
        "Er hat kein Auto.",
    ),
    (
        Clause(n.SHE, v.EAT, "progressive", negated=True, accusative=the("meat", None, "bare")),
        "She is not eating any meat.",
        "Sie isst kein Fleisch.",
    ),
    (
        Clause(n.SPEAKER, v.BUY, "past", negated=True, accusative=the("hat", n.RED)),
        "I did not buy the red hat.",
        "Ich habe den roten Hut nicht gekauft.",
    ),
    (
        Clause(n.WE, v.GO, "progressive", negated=True, complement=to("park")),
        "We are not going to the park.",
        "Wir gehen nicht in den Park.",
    ),
    (
        Clause(n.YOU, v.SWIM, modal=v.CAN, negated=True),
        "You cannot swim.",
        "Du kannst nicht schwimmen.",
    ),
    # Modal and separable verbs
    (
        Clause(PAUL, v.PICK_UP, modal=v.HAVE_TO, accusative=the("son", None, "his")),
        "Paul has to pick up his son.",
        "Paul muss seinen Sohn abholen.",
    ),
    (
        Clause(PAUL, v.PICK_UP, "progressive", accusative=the("son", None, "his")),
        "Paul is picking up his son.",
        "Paul holt seinen Sohn ab.",
    ),
    (
        Clause(n.SHE, v.INVITE, "past", accusative=n.THEY),
        "She invited them.",
        "Sie hat sie eingeladen.",
    ),
    (
        Clause(NounPhrase(noun("train")), v.DEPART, time=HALF_PAST_THREE),
        "The train leaves at half past three.",
        "Der Zug fährt um halb vier ab.",
    ),
    (
        Clause(
            n.THEY,
            v.TRY,
            "past",
            infinitive=Clause(n.THEY, verb("einschalten"), accusative=the("computer")),
        ),
        "They tried to turn on the computer.",
        "Sie haben versucht, den Computer einzuschalten.",
    ),
    (
        Clause(
            n.HE,
            v.LIVE,
            "ongoing",
            place=location(BERLIN),
            time=Phrase("for two years", "seit zwei Jahren"),
        ),
        "He has been living in Berlin for two years.",
        "Er wohnt seit zwei Jahren in Berlin.",
    ),
    # Being
    (Clause(PAUL, v.BE, complement=a("baker")), "Paul is a baker.", "Paul ist Bäcker."),
    (
        Clause(PAUL, v.BE, "past", complement=a("cook", n.GOOD)),
        "Paul was a good cook.",
        "Paul war ein guter Koch.",
    ),
    (
        Clause(ANNA, v.BE, complement=Comparison(n.OLD, the("brother", None, "her"))),
        "Anna is older than her brother.",
        "Anna ist älter als ihr Bruder.",
    ),
    # Questions
    (
        Question(Clause(n.YOU, v.WORK, "progressive", time=TODAY)),
        "Are you working today?",
        "Arbeitest du heute?",
    ),
    (
        Question(Clause(n.SHE, v.INVITE, "progressive"), adv.WHOM),
        "Who is she inviting?",
        "Wen lädt sie ein?",
    ),
    (
        Question(Clause(n.HE, v.HELP, "past"), adv.TO_WHOM),
        "Who did he help?",
        "Wem hat er geholfen?",
    ),
    (
        Question(Clause(n.WHO, v.READ, "past", accusative=the("letter"))),
        "Who read the letter?",
        "Wer hat den Brief gelesen?",
    ),
    (
        Question(Clause(n.YOU, v.GO, "progressive"), adv.WHERE_TO),
        "Where are you going?",
        "Wohin gehst du?",
    ),
    (
        Question(Clause(many("guest"), v.REST, "progressive", place=at("garden"))),
        "Are the guests resting in the garden?",
        "Ruhen sich die Gäste im Garten aus?",
    ),
    (
        Clause(n.HE, v.REST, "progressive", time=TODAY, front="time"),
        "Today he is resting.",
        "Heute ruht er sich aus.",
    ),
    (
        Question(
            Clause(n.THERE, v.THERE_IS, accusative=a("museum"), place=at("town")),
        ),
        "Is there a museum in the town?",
        "Gibt es in der Stadt ein Museum?",
    ),
    # Two clauses
    (
        Compound(
            Clause(ANNA, v.STAY, "progressive", complement=Phrase("at home", "zu Hause")),
            adv.BECAUSE,
            Clause(n.SHE, v.BE, complement=n.SICK),
        ),
        "Anna is staying at home because she is sick.",
        "Anna bleibt zu Hause, weil sie krank ist.",
    ),
    (
        Compound(
            Clause(n.WE, v.GO, "future", complement=to("lake")),
            adv.IF,
            Clause(NounPhrase(n.SUN), v.SHINE),
            subordinate_first=True,
        ),
        "If the sun shines, we will go to the lake.",
        "Wenn die Sonne scheint, werden wir an den See gehen.",
    ),
    (
        Compound(
            Clause(n.SPEAKER, v.KNOW_THAT),
            adv.THAT,
            Clause(PAUL, verb("anrufen"), "progressive", accusative=the("boss", None, "his")),
        ),
        "I know that Paul is calling his boss.",
        "Ich weiß, dass Paul seine Chefin anruft.",
    ),
    (
        Compound(
            Clause(n.SHE, v.KNOW_THAT, negated=True),
            adv.WHETHER,
            Clause(n.YOU, v.BUY, modal=v.WANTED_TO, accusative=the("dress")),
        ),
        "She does not know whether you wanted to buy the dress.",
        "Sie weiß nicht, ob du das Kleid kaufen wolltest.",
    ),
    (
        Compound(
            Clause(ANNA, v.DRINK, "progressive", accusative=the("tea", None, "bare")),
            adv.BUT,
            Clause(PAUL, v.DRINK, "progressive", accusative=the("coffee", None, "bare")),
            subordinate=False,
        ),
        "Anna is drinking tea, but Paul is drinking coffee.",
        "Anna trinkt Tee, aber Paul trinkt Kaffee.",
    ),
    # Relative clauses
    (
        Clause(
            NounPhrase(
                noun("man"),
                relative=RelativeClause(
                    "subject", Clause(Gap(False), v.BUY, "past", accusative=the("house"))
                ),
            ),
            v.BE,
            complement=the("uncle", None, "my"),
        ),
        "The man who bought the house is my uncle.",
        "Der Mann, der das Haus gekauft hat, ist mein Onkel.",
    ),
    (
        Clause(
            n.SPEAKER,
            v.KNOW,
            accusative=NounPhrase(
                noun("child"),
                True,
                relative=RelativeClause("dative", Clause(n.YOU, v.HELP, "past")),
            ),
        ),
        "I know the children who you helped.",
        "Ich kenne die Kinder, denen du geholfen hast.",
    ),
    (
        Clause(
            NounPhrase(
                noun("letter"), relative=RelativeClause("accusative", Clause(ANNA, v.WRITE, "past"))
            ),
            v.BE,
            "past",
            complement=n.LONG,
        ),
        "The letter that Anna wrote was long.",
        "Der Brief, den Anna geschrieben hat, war lang.",
    ),
]
