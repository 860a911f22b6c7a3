import textwrap

from dragoman.documents.wrapping import Paragraph, blocks, unwrapped

PROSE = (
    "The old baker sleeps in the small house at the river, and the young teacher reads a very "
    "long book about bread. It is late."
)


def test_lines_of_a_paragraph_are_joined():
    text = textwrap.fill(PROSE, 40)
    (paragraph,) = unwrapped(text)
    assert paragraph.text == PROSE
    assert paragraph.width == max(map(len, text.split("\n")))


def test_blank_lines_separate_paragraphs_and_stay():
    text = f"{textwrap.fill(PROSE, 40)}\n\n  \n{textwrap.fill(PROSE, 30)}\n"
    assert [paragraph.text for paragraph in unwrapped(text)] == [PROSE, "", "  ", PROSE, ""]


def test_a_bullet_begins_a_paragraph_and_its_further_lines_are_indented():
    items = [
        textwrap.fill(PROSE, 40, initial_indent=b, subsequent_indent="  ") for b in ("- ", "* ")
    ]
    first, second = unwrapped("\n".join(items))
    assert (first.text, second.text) == (f"- {PROSE}", f"* {PROSE}")
    assert first.margin == second.margin == "  "


def test_a_line_that_is_much_shorter_ends_a_paragraph():
    text = f"Dear reader,\n{textwrap.fill(PROSE, 40)}"
    assert [paragraph.text for paragraph in unwrapped(text)] == ["Dear reader,", PROSE]


def test_lines_without_words_and_other_levels_of_quotation_are_paragraphs_of_their_own():
    text = (
        "A heading that is long\n----------------------\n"
        "> somebody wrote this here\n> and that\nand I do"
    )
    assert [paragraph.text for paragraph in unwrapped(text)] == [
        "A heading that is long",
        "----------------------",
        "> somebody wrote this here and that",
        "and I do",
    ]


def test_a_single_line_has_no_width():
    assert unwrapped("  one line.  \r") == [Paragraph("  one line.  \r")]


def test_blocks_are_bounded():
    assert list(blocks(["aa", "bb", "", "cc"], 100)) == ["aa\nbb", "", "cc"]
    assert list(blocks(["aa", "bb", "cc"], 1)) == ["aa", "bb", "cc"]
    assert list(blocks([], 1)) == []
