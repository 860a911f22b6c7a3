from dragoman.corpus.phrasebook.numbers import cardinal, clock_time, dates, ordinal


def test_numbers_are_counted_right() -> None:
    expected = {
        1: ("one", "eins"),
        7: ("seven", "sieben"),
        12: ("twelve", "zwölf"),
        16: ("sixteen", "sechzehn"),
        17: ("seventeen", "siebzehn"),
        20: ("twenty", "zwanzig"),
        21: ("twenty-one", "einundzwanzig"),
        30: ("thirty", "dreißig"),
        66: ("sixty-six", "sechsundsechzig"),
        77: ("seventy-seven", "siebenundsiebzig"),
        99: ("ninety-nine", "neunundneunzig"),
    }
    assert {number: cardinal(number) for number in expected} == expected


def test_ordinals_are_ranked_right() -> None:
    expected = {
        1: ("first", "erst"),
        2: ("second", "zweit"),
        3: ("third", "dritt"),
        7: ("seventh", "siebt"),
        8: ("eighth", "acht"),
        12: ("twelfth", "zwölft"),
        19: ("nineteenth", "neunzehnt"),
        20: ("twentieth", "zwanzigst"),
        21: ("twenty-first", "einundzwanzigst"),
        30: ("thirtieth", "dreißigst"),
    }
    assert {number: ordinal(number) for number in expected} == expected


def test_the_german_clock_counts_towards_the_next_hour() -> None:
    expected = {
        (1, 0): ("one o'clock", "ein Uhr"),
        (3, 30): ("half past three", "halb vier"),
        (12, 30): ("half past twelve", "halb eins"),
        (9, 15): ("quarter past nine", "Viertel nach neun"),
        (6, 45): ("quarter to seven", "Viertel vor sieben"),
        (12, 50): ("ten to one", "zehn vor eins"),
        (1, 5): ("five past one", "fünf nach eins"),
    }
    assert {time: clock_time(*time) for time in expected} == expected


def test_the_year_has_its_days() -> None:
    days = dates("en")
    assert len(days) == 365
    assert ("the third of May", "dritten Mai") in days
