import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.documents.sentences import split_sentences


def sentences(text, language):
    return [sentence.strip() for sentence in split_sentences(text, language)]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("de", "Dr. Meier kam am 3. Mai an.|Er ging um 5 p.m. weg."),
        ("de", "Das kostet z. B. 3,50 Euro bzw. 4 Euro.|Prof. Dr. Müller sagt ja!|Wirklich?|Ja."),
        ("de", "Ludwig XIV. war König.|Er lebte im 17. Jahrhundert.|Das war 1700.|Am 5. Tag."),
        ("de_AT", "Er wohnt in der Hauptstr. 5 in Bonn.|Am 1. Januar 2020 zog er um."),
        ("en", "Dr. Smith arrived at 5 p.m. on Monday.|He left at 6 p.m.|It rained."),
        ("en", 'He said, "Stop! Now."|Then he left.|J. R. R. Tolkien wrote it.'),
        ("en", "The U.S. economy grew 3.5 percent in Q3.|It was e.g. faster than before."),
        ("en", "What?!|No...|Wait.|See www.example.com.|OK."),
        ("en", "It has approxm. five.|Version 2.|Next."),
        ("en", "1. One.|2. Two.|3. Three."),
        ("fr", "M. Dupont est arrivé.|Il est parti.|« Oui ! » dit-il."),
        ("cs", "Dne 5. května přišel.|Byl 3. den."),
        ("ru", "Он приехал в г. Москва в 1990 г. и остался.|Потом уехал."),
        ("hi", "मैं आया।|तुम गए।"),
        ("ar", "مرحبا.|كيف حالك؟|جيد."),
        ("zh-Hans", "他来了。|好吗？|“是的。”|他说。"),
        ("xx", "One is here.|Two is there."),
    ],
)
def test_sentences_end_where_the_language_ends_them(language, text):
    expected = text.split("|")
    between = "" if language.startswith("zh") else " "
    assert sentences(between.join(expected), language) == expected


@given(
    st.text(
        st.sampled_from("aÄ z9. .,;!?\u3000。，」)\"'\t\u2028_-漢1(😀ع")
        | st.characters(codec="utf-8")
    ),
    st.sampled_from(["en", "de", "ja", "ar", "hi", "", "xx", "DE-ch"]),
)
def test_sentences_together_are_the_text(text, language):
    text = text.replace("\n", " ")
    assert "".join(split_sentences(text, language)) == text


@pytest.mark.parametrize(
    "text",
    ["1. " * 50_000, "A. " * 50_000, "a" * 150_000, "... " * 40_000, "«" * 200_000, "<!" * 100_000],
)
def test_boundaries_that_are_taken_back_leave_the_text_in_one(text):
    assert split_sentences(text, "de") == [text]


@pytest.mark.parametrize("language", ["en", "ja"])
def test_a_long_line_has_the_sentences_of_its_parts(language):
    part = (
        "No! He said: “Stop. Now.” Then Mr. Smith left. Really? 他来了。好吗？ It is 3.5 percent. "
    )
    once = split_sentences(part, language)
    assert split_sentences(part * 1000, language) == once * 1000
