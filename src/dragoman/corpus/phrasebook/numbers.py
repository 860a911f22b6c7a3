"""Numbers, clock times and dates in words, in both languages."""

from dragoman.corpus.phrasebook.words import Phrase

_ENGLISH_UNITS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_ENGLISH_TENS = [
    "_",
    "_",
    "twenty",
    "thirty",
    "forty",
    "fifty",
    "sixty",
    "seventy",
    "eighty",
    "ninety",
]
_GERMAN_UNITS = [
    "null",
    "eins",
    "zwei",
    "drei",
    "vier",
    "fünf",
    "sechs",
    "sieben",
    "acht",
    "neun",
    "zehn",
    "elf",
    "zwölf",
    "dreizehn",
    "vierzehn",
    "fünfzehn",
    "sechzehn",
    "siebzehn",
    "achtzehn",
    "neunzehn",
]
_GERMAN_TENS = [
    "_",
    "_",
    "zwanzig",
    "dreißig",
    "vierzig",
    "fünfzig",
    "sechzig",
    "siebzig",
    "achtzig",
    "neunzig",
]

_ENGLISH_ORDINALS = {
    1: "first",
    2: "second",
    3: "third",
    5: "fifth",
    8: "eighth",
    9: "ninth",
    12: "twelfth",
}
_GERMAN_ORDINALS = {1: "erst", 3: "dritt", 7: "siebt", 8: "acht"}

_MONTH_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
MONTHS = (
    Phrase("January", "Januar"),
    Phrase("February", "Februar"),
    Phrase("March", "März"),
    Phrase("April", "April"),
    Phrase("May", "Mai"),
    Phrase("June", "Juni"),
    Phrase("July", "Juli"),
    Phrase("August", "August"),
    Phrase("September", "September"),
    Phrase("October", "Oktober"),
    Phrase("November", "November"),
    Phrase("December", "Dezember"),
)
WEEKDAYS = (
    Phrase("Monday", "Montag"),
    Phrase("Tuesday", "Dienstag"),
    Phrase("Wednesday", "Mittwoch"),
    Phrase("Thursday", "Donnerstag"),
    Phrase("Friday", "Freitag"),
    Phrase("Saturday", "Samstag"),
    Phrase("Sunday", "Sonntag"),
)


def cardinal(number: int) -> Phrase:
    """A number from 0 to 99 as it is counted: "twenty-one", "einundzwanzig"."""
    if number < 20:
        return Phrase(_ENGLISH_UNITS[number], _GERMAN_UNITS[number])
    tens, unit = divmod(number, 10)
    if unit == 0:
        return Phrase(_ENGLISH_TENS[tens], _GERMAN_TENS[tens])
    german_unit = "ein" if unit == 1 else _GERMAN_UNITS[unit]
    return Phrase(
        f"{_ENGLISH_TENS[tens]}-{_ENGLISH_UNITS[unit]}", f"{german_unit}und{_GERMAN_TENS[tens]}"
    )


def ordinal(number: int) -> Phrase:
    """A number from 1 to 31 that ranks; the German one still lacks its adjective ending."""
    english, german = cardinal(number)
    if number >= 20:
        tens, hyphen, unit = english.rpartition("-")
        english = tens + hyphen + _english_ordinal(number % 10, unit)
        return Phrase(english, german + "st")
    return Phrase(_english_ordinal(number, english), _GERMAN_ORDINALS.get(number, german + "t"))


def _english_ordinal(number: int, cardinal_word: str) -> str:
    if cardinal_word.endswith("y"):
        return cardinal_word[:-1] + "ieth"
    return _ENGLISH_ORDINALS.get(number, cardinal_word + "th")


def clock_time(hour: int, minute: int) -> Phrase:
    """A time on the twelve-hour clock; German counts the half hour towards the next."""
    this_hour = cardinal(hour)
    next_hour = cardinal(hour % 12 + 1)
    match minute:
        case 0:
            # Before "Uhr" the one loses its s: "ein Uhr", but "halb eins".
            german_hour = "ein" if hour == 1 else this_hour.german
            return Phrase(f"{this_hour.english} o'clock", f"{german_hour} Uhr")
        case 15:
            return Phrase(f"quarter past {this_hour.english}", f"Viertel nach {this_hour.german}")
        case 30:
            return Phrase(f"half past {this_hour.english}", f"halb {next_hour.german}")
        case 45:
            return Phrase(f"quarter to {next_hour.english}", f"Viertel vor {next_hour.german}")
        case _ if minute < 30:
            past = cardinal(minute)
            return Phrase(
                f"{past.english} past {this_hour.english}",
                f"{past.german} nach {this_hour.german}",
            )
        case _:
            to = cardinal(60 - minute)
            return Phrase(
                f"{to.english} to {next_hour.english}", f"{to.german} vor {next_hour.german}"
            )


def dates(german_ending: str) -> tuple[Phrase, ...]:
    """All days of the year: "the third of May", "dritten Mai".

    The German ending depends on what governs the date: "am dritten Mai", "der dritte Mai".
    """
    return tuple(
        Phrase(
            f"the {ordinal(day).english} of {month.english}",
            f"{ordinal(day).german}{german_ending} {month.german}",
        )
        for month, length in zip(MONTHS, _MONTH_LENGTHS, strict=True)
        for day in range(1, length + 1)
    )
