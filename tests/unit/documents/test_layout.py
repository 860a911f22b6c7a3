import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.documents.layout import put_together, take_apart


def translated(text, language="en", lines="split", translate=str.upper):
    layout = take_apart(text, language, lines)
    return put_together(layout, [translate(sentence) for sentence in layout.sentences])


def test_indentation_bullets_blank_lines_and_line_ends_stay():
    text = (
        "# A title\r\n"
        "\r\n"
        "  - one is here.  two is not. \r\n"
        "\t* Three!   Four?\r\n"
        "10. ten (really).\r\n"
        "a) first\r\n"
        "> > quoted text.\r\n"
        "-----\r\n"
        " \r\n"
        "😀 ***"
    )
    assert translated(text) == text.upper().replace("A) FIRST", "a) FIRST")
    assert take_apart(text, "en", "split").sentences == [
        *("A title", "one is here.  two is not.", "Three!", "Four?", "ten (really).", "first"),
        "quoted text.",
    ]


def test_a_whole_line_is_one_sentence_with_its_bullet():
    layout = take_apart(" - One. Two. \n\n3. Four", "en", "whole")
    assert layout.sentences == ["- One. Two.", "3. Four"]
    assert put_together(layout, ["x", "y"]) == " x \n\ny"


def test_spaces_between_sentences_follow_the_script():
    def chinese(sentence):
        return "好。"

    assert translated("One. Two.\nThree.", translate=chinese) == "好。好。\n好。"
    assert translated("他来了。好。", "zh", translate=lambda sentence: "Yes.") == "Yes. Yes."
    assert translated("他来了。好。 是。", "zh", translate=chinese) == "好。好。 好。"


def test_a_sentence_without_a_translation_leaves_no_double_space():
    layout = take_apart("One. Two. Three.", "en", "split")
    assert put_together(layout, ["A.", "", "C."]) == "A. C."


def test_a_translation_cannot_add_lines_or_columns():
    assert put_together(take_apart("x", "en", "whole"), ["a\nb\tc\rd"]) == "a b c d"


def test_a_wrong_number_of_translations_is_refused():
    with pytest.raises(ValueError, match="2 translations of 1"):
        put_together(take_apart("x", "en", "split"), ["a", "b"])


def test_wrapped_text_is_translated_by_paragraphs_and_wrapped_again():
    prose = "The old baker sleeps in the house. The teacher reads a long book. They are old."
    item = textwrap.fill(prose, 30, initial_indent="  - ", subsequent_indent="    ")
    text = f"{textwrap.fill(prose, 40)}\n\n{item}\n"
    layout = take_apart(text, "en", "wrapped")
    assert layout.sentences == 2 * [
        "The old baker sleeps in the house.",
        "The teacher reads a long book.",
        "They are old.",
    ]
    assert put_together(layout, layout.sentences) == text
    longer = put_together(layout, [f"And so on: {sentence}" for sentence in layout.sentences])
    width = max(map(len, text.split("\n")))
    assert max(map(len, longer.split("\n"))) <= width
    assert longer.count("\n") > text.count("\n")
    with_returns = text.replace("\n", "\r\n")
    layout = take_apart(with_returns, "en", "wrapped")
    assert put_together(layout, layout.sentences) == with_returns


CHARACTERS = st.characters(codec="utf-8")
MARKS = st.sampled_from("aÄ z9. .,;!?\u3000。，」)\"'\t\u2028_-漢1(*>#\r\n😀")


@given(st.text(MARKS | CHARACTERS), st.sampled_from(["split", "whole"]))
def test_a_text_put_together_from_its_own_sentences_is_the_text(text, lines):
    layout = take_apart(text, "de", lines)
    assert all(sentence == sentence.strip() != "" for sentence in layout.sentences)
    together = put_together(layout, layout.sentences)
    assert together.count("\n") == text.count("\n")
    if not any(set(sentence) & set("\t\r") for sentence in layout.sentences):
        assert together == text


@given(st.text(MARKS | CHARACTERS))
def test_of_wrapped_text_all_words_come_back(text):
    layout = take_apart(text, "de", "wrapped")
    together = put_together(layout, layout.sentences)
    assert together.replace(">", " ").split() == text.replace(">", " ").split()
