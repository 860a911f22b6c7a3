"""Adverbs, expressions of time and conjunctions, grouped by the tense or verb they suit."""

from dragoman.corpus.phrasebook.numbers import MONTHS, WEEKDAYS, cardinal, clock_time, dates
from dragoman.corpus.phrasebook.words import Phrase

SLOWLY = Phrase("slowly", "langsam")
QUICKLY = Phrase("quickly", "schnell")
CAREFULLY = Phrase("carefully", "vorsichtig")
QUIETLY = Phrase("quietly", "leise")
LOUDLY = Phrase("loudly", "laut")
HARD = Phrase("hard", "hart")
WELL = Phrase("well", "gut")

BY_TRANSPORT = (
    Phrase("by bus", "mit dem Bus"),
    Phrase("by train", "mit dem Zug"),
)
FREQUENCIES = (
    Phrase("often", "oft"),
    Phrase("always", "immer"),
    Phrase("sometimes", "manchmal"),
    Phrase("never", "nie"),
    Phrase("rarely", "selten"),
)
ALREADY = Phrase("already", "schon")
VERY = Phrase("very", "sehr")

_PARTS_OF_DAY = (
    Phrase("in the morning", "am Morgen"),
    Phrase("in the afternoon", "am Nachmittag"),
    Phrase("in the evening", "am Abend"),
)
_WEEKDAYS = tuple(Phrase(f"on {day.english}", f"am {day.german}") for day in WEEKDAYS)
_MONTHS = tuple(Phrase(f"in {month.english}", f"im {month.german}") for month in MONTHS)
_SEASONS = (
    Phrase("in spring", "im Frühling"),
    Phrase("in summer", "im Sommer"),
    Phrase("in autumn", "im Herbst"),
    Phrase("in winter", "im Winter"),
)
CLOCK_TIMES = tuple(
    clock_time(hour, minute) for hour in range(1, 13) for minute in (0, 5, 10, 15, 30, 45, 50, 55)
)
AT_CLOCK_TIMES = tuple(Phrase(f"at {time.english}", f"um {time.german}") for time in CLOCK_TIMES)
ON_DATES = tuple(Phrase(f"on {day.english}", f"am {day.german}") for day in dates("en"))

# The German plurals as "vor", "in" and "seit" want them, in the dative.
_UNITS = (
    ("hours", "Stunden"),
    ("days", "Tagen"),
    ("weeks", "Wochen"),
    ("months", "Monaten"),
    ("years", "Jahren"),
)
SMALL_NUMBERS = tuple(cardinal(number) for number in range(2, 13))
_SPANS = tuple(
    Phrase(f"{number.english} {english}", f"{number.german} {german}")
    for number in SMALL_NUMBERS
    for english, german in _UNITS
)
_AGO = tuple(Phrase(f"{span.english} ago", f"vor {span.german}") for span in _SPANS)
_AHEAD = tuple(Phrase(f"in {span.english}", f"in {span.german}") for span in _SPANS)
SINCE = tuple(Phrase(f"for {span.english}", f"seit {span.german}") for span in _SPANS)
SINCE_HOURS = tuple(since for since in SINCE if since.english.endswith("hours"))[:5]
SINCE_YEARS = tuple(since for since in SINCE if since.english.endswith(("months", "years")))

# Groups are drawn evenly, then their members, so that short groups make frequent phrases.
PAST_TIMES = (
    (Phrase("yesterday", "gestern"), Phrase("this morning", "heute Morgen")),
    (
        Phrase("last week", "letzte Woche"),
        Phrase("last year", "letztes Jahr"),
        Phrase("last summer", "letzten Sommer"),
        Phrase("yesterday evening", "gestern Abend"),
    ),
    _WEEKDAYS,
    AT_CLOCK_TIMES,
    ON_DATES,
    _MONTHS,
    _AGO,
    _PARTS_OF_DAY + _SEASONS,
)
FUTURE_TIMES = (
    (Phrase("tomorrow", "morgen"), Phrase("this evening", "heute Abend")),
    (
        Phrase("next week", "nächste Woche"),
        Phrase("next year", "nächstes Jahr"),
        Phrase("next summer", "nächsten Sommer"),
        Phrase("tomorrow evening", "morgen Abend"),
    ),
    _WEEKDAYS,
    AT_CLOCK_TIMES,
    ON_DATES,
    _MONTHS,
    _AHEAD,
    _PARTS_OF_DAY + _SEASONS,
)
PRESENT_TIMES = ((Phrase("now", "jetzt"), Phrase("today", "heute")),)
HABITUAL_TIMES = (
    (
        Phrase("every day", "jeden Tag"),
        Phrase("every morning", "jeden Morgen"),
        Phrase("every evening", "jeden Abend"),
        Phrase("every week", "jede Woche"),
    ),
    _PARTS_OF_DAY + _SEASONS,
)

BECAUSE = Phrase("because", "weil")
ALTHOUGH = Phrase("although", "obwohl")
IF = Phrase("if", "wenn")
THAT = Phrase("that", "dass")
WHETHER = Phrase("whether", "ob")
AND = Phrase("and", "und")
BUT = Phrase("but", "aber")

WHAT = Phrase("what", "was")
WHOM = Phrase("who", "wen")
TO_WHOM = Phrase("who", "wem")
WHEN = Phrase("when", "wann")
WHERE = Phrase("where", "wo")
WHERE_TO = Phrase("where", "wohin")
WHY = Phrase("why", "warum")
