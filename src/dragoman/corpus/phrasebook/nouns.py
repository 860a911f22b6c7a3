"""The nouns with their adjectives, the names and the pronouns.

Every noun has one home group, which says what adjectives suit it; `pick` makes up further groups
for the verbs to choose their subjects and objects from, so that sentences make sense. English
nouns for persons leave the sex open; the table settles it, half of them women, so that each
sentence has one translation.
"""

from dataclasses import replace

from dragoman.corpus.phrasebook.meaning import Name, Pronoun
from dragoman.corpus.phrasebook.words import Adjective, Noun, Site, adjective, noun

YOUNG = adjective("young, younger", "jung, jünger")
OLD = adjective("old, older", "alt, älter")
FRIENDLY = adjective("friendly, friendlier", "freundlich, freundlicher")
CLEVER = adjective("clever, cleverer", "klug, klüger")
FAMOUS = adjective("famous, more famous", "berühmt, berühmter")
HAPPY = adjective("happy, happier", "glücklich, glücklicher")
SAD = adjective("sad", "traurig")
TIRED = adjective("tired", "müde", stem="müd")
SICK = adjective("sick", "krank")
HUNGRY = adjective("hungry", "hungrig")
THIRSTY = adjective("thirsty", "durstig")
HEALTHY = adjective("healthy", "gesund")
ANGRY = adjective("angry", "wütend")
POLITE = adjective("polite", "höflich")
NICE = adjective("nice, nicer", "nett, netter")
TALL = adjective("tall, taller", "groß, größer")
STRONG = adjective("strong, stronger", "stark, stärker")
NERVOUS = adjective("nervous", "nervös")
PUNCTUAL = adjective("punctual", "pünktlich")
LITTLE = adjective("little", "klein")
BIG = adjective("big, bigger", "groß, größer")
SMALL = adjective("small, smaller", "klein, kleiner")
NEW = adjective("new, newer", "neu, neuer")
BEAUTIFUL = adjective("beautiful, more beautiful", "schön, schöner")
EXPENSIVE = adjective("expensive, more expensive", "teuer, teurer", stem="teur")
CHEAP = adjective("cheap, cheaper", "billig, billiger")
MODERN = adjective("modern, more modern", "modern, moderner")
HEAVY = adjective("heavy, heavier", "schwer, schwerer")
LIGHT = adjective("light, lighter", "leicht, leichter")
FAST = adjective("fast, faster", "schnell, schneller")
SLOW = adjective("slow, slower", "langsam, langsamer")
LOUD = adjective("loud, louder", "laut, lauter")
QUIET = adjective("quiet, quieter", "ruhig, ruhiger")
CLEAN = adjective("clean", "sauber")
DIRTY = adjective("dirty", "schmutzig")
EMPTY = adjective("empty", "leer")
FULL = adjective("full", "voll")
BROKEN = adjective("broken", "kaputt")
OPEN = adjective("open", "offen")
CLOSED = adjective("closed", "geschlossen")
FRESH = adjective("fresh", "frisch")
COLD = adjective("cold", "kalt")
WARM = adjective("warm", "warm")
HOT = adjective("hot", "heiß")
SWEET = adjective("sweet", "süß")
TASTY = adjective("tasty", "lecker")
RIPE = adjective("ripe", "reif")
LONG = adjective("long, longer", "lang, länger")
SHORT = adjective("short, shorter", "kurz, kürzer")
INTERESTING = adjective("interesting, more interesting", "interessant, interessanter")
BORING = adjective("boring, more boring", "langweilig, langweiliger")
FUNNY = adjective("funny, funnier", "lustig, lustiger")
DIFFICULT = adjective("difficult, more difficult", "schwierig, schwieriger")
SIMPLE = adjective("simple, simpler", "einfach, einfacher")
IMPORTANT = adjective("important, more important", "wichtig, wichtiger")
GOOD = adjective("good, better", "gut, besser")
RED = adjective("red", "rot")
BLUE = adjective("blue", "blau")
GREEN = adjective("green", "grün")
YELLOW = adjective("yellow", "gelb")
BLACK = adjective("black", "schwarz")
WHITE = adjective("white", "weiß")
BROWN = adjective("brown", "braun")

_BY_ENGLISH: dict[str, Noun] = {}


def _group(
    adjectives: tuple[Adjective, ...], *nouns: Noun, is_person: bool = False
) -> tuple[Noun, ...]:
    """The home group of some nouns."""
    members = tuple(replace(noun, adjectives=adjectives, is_person=is_person) for noun in nouns)
    _BY_ENGLISH.update({member.english: member for member in members})
    return members


def pick(english: str) -> tuple[Noun, ...]:
    """Nouns by their English singulars, separated by commas."""
    return tuple(_BY_ENGLISH[word] for word in english.split(", "))


MASCULINE_KIN = _group(
    (),
    noun("father", "der Vater"),
    noun("brother", "der Bruder, Brüder"),
    noun("son", "der Sohn, Söhne"),
    noun("uncle", "der Onkel, Onkel"),
    noun("grandfather", "der Großvater"),
    is_person=True,
)
FEMININE_KIN = _group(
    (),
    noun("mother", "die Mutter"),
    noun("sister", "die Schwester, Schwestern"),
    noun("daughter", "die Tochter, Töchter"),
    noun("aunt", "die Tante, Tanten"),
    noun("cousin", "die Cousine, Cousinen"),
    noun("grandmother", "die Großmutter"),
    is_person=True,
)
FRIENDS = _group(
    (NEW, OLD, NICE, CLEVER, GOOD),
    noun("friend", "der Freund, Freunde"),
    noun("neighbor", "der Nachbar, Nachbarn", weak=True),
    noun("colleague", "der Kollege, Kollegen", weak=True),
    noun("boss", "die Chefin"),
    is_person=True,
)
CHILDREN = _group(
    (LITTLE, CLEVER, POLITE),
    noun("child, children", "das Kind, Kinder"),
    noun("boy", "der Junge, Jungen", weak=True),
    noun("girl", "das Mädchen, Mädchen"),
    is_person=True,
)
ADULTS = _group(
    (YOUNG, OLD, FRIENDLY, NICE),
    noun("man, men", "der Mann, Männer"),
    noun("woman, women", "die Frau, Frauen"),
    noun("student", "der Student, Studenten", weak=True),
    noun("tourist", "der Tourist, Touristen", weak=True),
    noun("guest", "der Gast, Gäste"),
    is_person=True,
)
MASCULINE_PROFESSIONS = _group(
    (YOUNG, OLD, FRIENDLY, GOOD, FAMOUS),
    noun("baker", "der Bäcker, Bäcker"),
    noun("gardener", "der Gärtner, Gärtner"),
    noun("cook", "der Koch, Köche"),
    noun("farmer", "der Bauer, Bauern", weak=True),
    noun("mechanic", "der Mechaniker, Mechaniker"),
    noun("policeman, policemen", "der Polizist, Polizisten", weak=True),
    noun("waiter", "der Kellner, Kellner"),
    noun("painter", "der Maler, Maler"),
    noun("engineer", "der Ingenieur, Ingenieure"),
    noun("musician", "der Musiker, Musiker"),
    is_person=True,
)
FEMININE_PROFESSIONS = _group(
    (YOUNG, OLD, FRIENDLY, GOOD, FAMOUS),
    noun("teacher", "die Lehrerin, Lehrerinnen"),
    noun("doctor", "die Ärztin, Ärztinnen"),
    noun("nurse", "die Krankenschwester, Krankenschwestern"),
    noun("actress", "die Schauspielerin, Schauspielerinnen"),
    noun("waitress", "die Kellnerin, Kellnerinnen"),
    noun("singer", "die Sängerin, Sängerinnen"),
    noun("pilot", "die Pilotin, Pilotinnen"),
    noun("journalist", "die Journalistin, Journalistinnen"),
    noun("lawyer", "die Anwältin, Anwältinnen"),
    noun("writer", "die Schriftstellerin, Schriftstellerinnen"),
    is_person=True,
)
ANIMALS = _group(
    (BIG, SMALL, OLD, YOUNG, BLACK, WHITE, BROWN),
    noun("dog", "der Hund, Hunde"),
    noun("cat", "die Katze, Katzen"),
    noun("bird", "der Vogel, Vögel"),
    noun("horse", "das Pferd, Pferde"),
    noun("cow", "die Kuh, Kühe"),
    noun("rabbit", "das Kaninchen, Kaninchen"),
    noun("duck", "die Ente, Enten"),
    noun("pig", "das Schwein, Schweine"),
)
FRUIT = _group(
    (FRESH, RIPE, SWEET, BIG, SMALL),
    noun("apple", "der Apfel, Äpfel"),
    noun("pear", "die Birne, Birnen"),
    noun("orange", "die Orange, Orangen"),
    noun("banana", "die Banane, Bananen"),
    noun("tomato, tomatoes", "die Tomate, Tomaten"),
    noun("strawberry", "die Erdbeere, Erdbeeren"),
)
DISHES = _group(
    (FRESH, TASTY, BIG, SMALL),
    noun("egg", "das Ei, Eier"),
    noun("cake", "der Kuchen, Kuchen"),
    noun("pizza", "die Pizza, Pizzas"),
    noun("sausage", "die Wurst, Würste"),
    noun("roll", "das Brötchen, Brötchen"),
    noun("potato, potatoes", "die Kartoffel, Kartoffeln"),
)
FOODS = _group(
    (FRESH, TASTY, GOOD),
    noun("bread", "das Brot"),
    noun("cheese", "der Käse"),
    noun("meat", "das Fleisch"),
    noun("soup", "die Suppe"),
    noun("rice", "der Reis"),
    noun("salad", "der Salat"),
    noun("fish", "der Fisch"),
    noun("butter", "die Butter"),
    noun("chocolate", "die Schokolade"),
    noun("honey", "der Honig"),
)
DRINKS = _group(
    (COLD, GOOD),
    noun("water", "das Wasser"),
    noun("milk", "die Milch"),
    noun("coffee", "der Kaffee"),
    noun("tea", "der Tee"),
    noun("juice", "der Saft"),
    noun("wine", "der Wein"),
    noun("beer", "das Bier"),
    noun("lemonade", "die Limonade"),
)
READING = _group(
    (LONG, SHORT, INTERESTING, BORING, NEW, FUNNY),
    noun("book", "das Buch, Bücher"),
    noun("letter", "der Brief, Briefe"),
    noun("story", "die Geschichte, Geschichten"),
    noun("poem", "das Gedicht, Gedichte"),
    noun("email", "die E-Mail, E-Mails"),
    noun("article", "der Artikel, Artikel"),
    noun("novel", "der Roman, Romane"),
    noun("song", "das Lied, Lieder"),
    noun("film", "der Film, Filme"),
)
PAPERS = _group(
    (OLD, NEW, INTERESTING),
    noun("newspaper", "die Zeitung, Zeitungen"),
    noun("magazine", "die Zeitschrift, Zeitschriften"),
    noun("map", "die Landkarte, Landkarten"),
    noun("photo", "das Foto, Fotos"),
)
TASKS = _group(
    (DIFFICULT, SIMPLE, IMPORTANT, INTERESTING),
    noun("question", "die Frage, Fragen"),
    noun("answer", "die Antwort, Antworten"),
    noun("exercise", "die Übung, Übungen"),
    noun("problem", "das Problem, Probleme"),
    noun("word", "das Wort, Wörter"),
    noun("sentence", "der Satz, Sätze"),
)
CLOTHES = _group(
    (NEW, RED, BLUE, GREEN, BLACK, WHITE, WARM, EXPENSIVE),
    noun("shirt", "das Hemd, Hemden"),
    noun("dress", "das Kleid, Kleider"),
    noun("coat", "der Mantel, Mäntel"),
    noun("jacket", "die Jacke, Jacken"),
    noun("hat", "der Hut, Hüte"),
    noun("skirt", "der Rock, Röcke"),
    noun("scarf, scarves", "der Schal, Schals"),
    noun("sweater", "der Pullover, Pullover"),
    noun("cap", "die Mütze, Mützen"),
)
BELONGINGS = _group(
    (NEW, OLD, BLACK, RED, EXPENSIVE, CHEAP),
    noun("bag", "die Tasche, Taschen"),
    noun("umbrella", "der Regenschirm, Regenschirme"),
    noun("phone", "das Telefon, Telefone"),
    noun("watch", "die Uhr, Uhren"),
    noun("camera", "die Kamera, Kameras"),
    noun("ball", "der Ball, Bälle"),
    noun("doll", "die Puppe, Puppen"),
    noun("pencil", "der Bleistift, Bleistifte"),
) + _group(
    (NEW, OLD),
    noun("key", "der Schlüssel, Schlüssel"),
    noun("ticket", "die Fahrkarte, Fahrkarten"),
)
LUGGAGE = _group(
    (HEAVY, LIGHT, BIG, SMALL),
    noun("suitcase", "der Koffer, Koffer"),
    noun("box", "die Kiste, Kisten"),
    noun("backpack", "der Rucksack, Rucksäcke"),
    noun("basket", "der Korb, Körbe"),
    noun("present", "das Geschenk, Geschenke"),
)
TABLEWARE = _group(
    (CLEAN, DIRTY, EMPTY, NEW),
    noun("plate", "der Teller, Teller"),
    noun("cup", "die Tasse, Tassen"),
    noun("glass", "das Glas, Gläser"),
    noun("bottle", "die Flasche, Flaschen"),
    noun("vase", "die Vase, Vasen"),
    noun("knife, knives", "das Messer, Messer"),
    noun("fork", "die Gabel, Gabeln"),
    noun("spoon", "der Löffel, Löffel"),
)
DEVICES = _group(
    (NEW, OLD, MODERN, EXPENSIVE, CHEAP),
    noun("computer", "der Computer, Computer"),
    noun("lamp", "die Lampe, Lampen"),
    noun("radio", "das Radio, Radios"),
    noun("television", "der Fernseher, Fernseher"),
    noun("heater", "die Heizung, Heizungen"),
)
DECORATIONS = _group(
    (BEAUTIFUL, BIG, SMALL, OLD, NEW),
    noun("picture", "das Bild, Bilder"),
    noun("mirror", "der Spiegel, Spiegel"),
    noun("clock", "die Uhr, Uhren"),
)
PLANTS = _group(
    (BEAUTIFUL, RED, YELLOW, WHITE, FRESH),
    noun("flower", "die Blume, Blumen"),
    noun("rose", "die Rose, Rosen"),
)
FURNITURE = _group(
    (NEW, OLD, BIG, SMALL, WHITE, BROWN),
    noun("table", "der Tisch, Tische"),
    noun("chair", "der Stuhl, Stühle"),
    noun("bed", "das Bett, Betten"),
    noun("sofa", "das Sofa, Sofas"),
    noun("shelf, shelves", "das Regal, Regale"),
    noun("desk", "der Schreibtisch, Schreibtische"),
    noun("cupboard", "der Schrank, Schränke"),
)
FIXTURES = _group(
    (BIG, SMALL, OLD, WHITE),
    noun("door", "die Tür, Türen"),
    noun("window", "das Fenster, Fenster"),
)
WALLS = _group(
    (WHITE,),
    noun("wall", "die Wand"),
)
VEHICLES = _group(
    (NEW, OLD, RED, BLUE, FAST, EXPENSIVE),
    noun("car", "das Auto, Autos"),
    noun("bicycle", "das Fahrrad, Fahrräder"),
    noun("motorcycle", "das Motorrad, Motorräder"),
    noun("truck", "der Lastwagen, Lastwagen"),
)
TRANSPORT = _group(
    (),
    noun("bus", "der Bus"),
    noun("train", "der Zug"),
    noun("tram", "die Straßenbahn"),
    noun("ship", "das Schiff"),
    noun("taxi", "das Taxi"),
)
BUILDINGS = _group(
    (OLD, NEW, BIG, SMALL, BEAUTIFUL, FAMOUS, MODERN),
    noun("house", "das Haus, Häuser"),
    noun("school", "die Schule"),
    noun("theater", "das Theater, Theater"),
    noun("museum", "das Museum, Museen"),
    noun("hotel", "das Hotel"),
    noun("restaurant", "das Restaurant"),
    noun("library", "die Bibliothek"),
    noun("church", "die Kirche, Kirchen"),
    noun("castle", "das Schloss, Schlösser"),
    noun("market", "der Markt"),
    noun("cinema", "das Kino"),
)
SURROUNDINGS = _group(
    (),
    noun("kitchen", "die Küche"),
    noun("garden", "der Garten"),
    noun("park", "der Park"),
    noun("office", "das Büro"),
    noun("hospital", "das Krankenhaus"),
    noun("forest", "der Wald"),
    noun("supermarket", "der Supermarkt"),
    noun("bathroom", "das Badezimmer"),
    noun("living room", "das Wohnzimmer"),
    noun("village", "das Dorf"),
    noun("café", "das Café"),
    noun("bakery", "die Bäckerei"),
    noun("station", "der Bahnhof"),
    noun("airport", "der Flughafen"),
    noun("bus stop", "die Haltestelle"),
    noun("beach", "der Strand"),
    noun("lake", "der See"),
    noun("river", "der Fluss"),
    noun("playground", "der Spielplatz"),
    noun("town", "die Stadt"),
    noun("street", "die Straße"),
)
EVENTS = _group(
    (),
    noun("party", "die Party"),
    noun("concert", "das Konzert"),
    noun("journey", "die Reise"),
    noun("weekend", "das Wochenende"),
    noun("exam", "die Prüfung"),
    noun("birthday", "der Geburtstag"),
    noun("music", "die Musik"),
    noun("work", "die Arbeit"),
    noun("time", "die Zeit"),
)

SUN = noun("sun", "die Sonne")

KIN = MASCULINE_KIN + FEMININE_KIN
PROFESSIONS = MASCULINE_PROFESSIONS + FEMININE_PROFESSIONS
PERSONS = KIN + FRIENDS + CHILDREN + ADULTS + PROFESSIONS
GROWN_UPS = KIN + FRIENDS + ADULTS + PROFESSIONS


def _sites(english_at: str, german_at: str, german_to: str, english: str) -> tuple[Site, ...]:
    """Places that share their prepositions; only "zu" takes the dative for a direction."""
    return tuple(
        Site(
            place, english_at, german_at, german_to, "dative" if german_to == "zu" else "accusative"
        )
        for place in pick(english)
    )


SWIMMING_SITES = _sites("in", "in", "in", "lake, river")
ROOMS = _sites("in", "in", "in", "kitchen, garden, office, bathroom, living room")
SITES = (
    *_sites("in", "in", "in", "park, forest, village, town, hospital, library, church"),
    *_sites("at", "in", "in", "school, theater, museum, hotel, restaurant, cinema, café"),
    *_sites("at", "in", "in", "supermarket, bakery"),
    *_sites("at", "an", "zu", "station, airport, bus stop"),
    *_sites("at", "an", "an", "beach, lake, river"),
    *_sites("at", "auf", "auf", "market"),
    *_sites("on", "auf", "auf", "playground"),
)


def pick_sites(english: str) -> tuple[Site, ...]:
    """Sites by their English nouns, separated by commas."""
    by_english = {site.noun.english: site for site in (*ROOMS, *SITES)}
    return tuple(by_english[word] for word in english.split(", "))


NAMES = (
    Name("Anna", "Anna", "f"),
    Name("Maria", "Maria", "f"),
    Name("Laura", "Laura", "f"),
    Name("Julia", "Julia", "f"),
    Name("Emma", "Emma", "f"),
    Name("Paul", "Paul", "m"),
    Name("Peter", "Peter", "m"),
    Name("Martin", "Martin", "m"),
    Name("David", "David", "m"),
    Name("Leon", "Leon", "m"),
)
CITIES = (
    Name("Berlin", "Berlin"),
    Name("Hamburg", "Hamburg"),
    Name("Munich", "München"),
    Name("Cologne", "Köln"),
    Name("Vienna", "Wien"),
    Name("Zurich", "Zürich"),
    Name("Paris", "Paris"),
    Name("London", "London"),
    Name("Rome", "Rom"),
    Name("Prague", "Prag"),
)
COUNTRIES = (
    Name("Germany", "Deutschland"),
    Name("Austria", "Österreich"),
    Name("France", "Frankreich"),
    Name("Italy", "Italien"),
    Name("Spain", "Spanien"),
    Name("Sweden", "Schweden"),
)

SPEAKER = Pronoun("I", "me", "ich", "mich", "mir", 0, "my")
YOU = Pronoun("you", "you", "du", "dich", "dir", 1, "your")
HE = Pronoun("he", "him", "er", "ihn", "ihm", 2, "his")
SHE = Pronoun("she", "her", "sie", "sie", "ihr", 2, "her")
WE = Pronoun("we", "us", "wir", "uns", "uns", 3, "our")
THEY = Pronoun("they", "them", "sie", "sie", "ihnen", 4, "their")
IT = Pronoun("it", "it", "es", "es", "ihm", 2, "his")
"""Impersonal only, as in "it is raining": a thing's pronoun would depend on its German gender."""
THERE = Pronoun("there", "there", "es", "es", "ihm", 2, "his")
WHO = Pronoun("who", "who", "wer", "wen", "wem", 2, "his")
PRONOUNS = (*(SPEAKER, YOU) * 3, HE, SHE, WE, THEY)
"""I and you are drawn most often, as their verb forms serve no other subject."""
