from dragoman.corpus.phrasebook import adverbials as adv


def test_times_suit_the_tense_of_their_group() -> None:
    def english(groups):
        return {time.english for group in groups for time in group}

    assert {"yesterday", "last week", "two days ago"} <= english(adv.PAST_TIMES)
    assert {"tomorrow", "next week", "in two days"} <= english(adv.FUTURE_TIMES)
    only_past = english(adv.PAST_TIMES) - english(adv.FUTURE_TIMES)
    only_future = english(adv.FUTURE_TIMES) - english(adv.PAST_TIMES)
    assert all(
        "ago" in time or "last" in time or "yesterday" in time
        for time in only_past - {"this morning"}
    )
    assert not any("ago" in time or "last" in time for time in only_future)


def test_no_time_has_two_translations() -> None:
    german_of: dict[str, str] = {}
    groups = (*adv.PAST_TIMES, *adv.FUTURE_TIMES, *adv.PRESENT_TIMES, *adv.HABITUAL_TIMES)
    for time in (time for group in (*groups, adv.SINCE, adv.FREQUENCIES) for time in group):
        assert german_of.setdefault(time.english, time.german) == time.german
    assert german_of["at half past three"] == "um halb vier"
    assert german_of["on the third of May"] == "am dritten Mai"
    assert german_of["for five years"] == "seit fünf Jahren"


def test_short_spans_are_in_hours_and_long_ones_in_months_or_years() -> None:
    assert {time.english.split()[-1] for time in adv.SINCE_HOURS} == {"hours"}
    assert {time.english.split()[-1] for time in adv.SINCE_YEARS} == {"months", "years"}
