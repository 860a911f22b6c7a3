import re

import pytest
from unit.report.rendered import attacked, documents

from dragoman.report.markdown import escaped, sparkline


def test_a_table_cell_stays_one_cell_in_markdown(empty_run):
    _, markdown, _ = documents(attacked(empty_run))
    tables = [
        [len(re.findall(r"(?<!\\)\|", row)) for row in paragraph.splitlines()]
        for paragraph in markdown.split("\n\n")
        if paragraph.startswith("|")
    ]

    assert len(tables) > 10
    assert all(len(set(bars)) == 1 for bars in tables)
    assert "\\<script\\>" in markdown


def test_text_with_a_fence_does_not_end_the_fenced_block(empty_run):
    _, markdown, _ = documents(attacked(empty_run))

    assert "````\nvalidation during training" in markdown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a|b\nc", r"a\|b c"),
        ("<b>", r"\<b\>"),
        ("_x_ and tokens_per_update", r"\_x\_ and tokens_per_update"),
        ("fish & chips &lt;", r"fish & chips \&lt;"),
        ("[a](b) *c* `d` \\", r"\[a\](b) \*c\* \`d\` \\"),
    ],
)
def test_markdown_shows_text_as_it_is(text, shown):
    assert escaped(text) == shown


def test_a_sparkline_goes_from_the_lowest_to_the_highest():
    assert sparkline([0.0, 3.5, 7.0]) == "▁▅█"
    assert sparkline([2.0, 2.0]) == "▁▁"
