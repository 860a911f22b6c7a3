from functools import partial
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.documents.layout import take_apart
from dragoman.serve.markup import put_together_html, take_apart_html

split = partial(take_apart, language="en", lines="split")


def translated(page, translate=str.upper):
    parts = take_apart_html(page, split)
    sentences = [s for part in parts if not isinstance(part, str) for s in part.sentences]
    return put_together_html(parts, iter([translate(sentence) for sentence in sentences]))


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("plain", "PLAIN"),
        ("<p>one</p>\n <p>two</p>", "<p>ONE</p>\n <p>TWO</p>"),
        ('<a HREF="x?a=1&amp;b" disabled>go</a>', '<a HREF="x?a=1&amp;b" disabled>GO</a>'),
        ("a<br>b<br/>c", "A<br>B<br/>C"),
        ("<!doctype html><!-- keep -->x", "<!doctype html><!-- keep -->X"),
        ("<script>if (a < b) go()</script>x", "<script>if (a < b) go()</script>X"),
        ("<style>p > b { }</style>x", "<style>p > b { }</style>X"),
        ("<code>let x</code> y", "<code>let x</code> Y"),
        ('<b translate="no">name</b> y', '<b translate="no">name</b> Y'),
        ('<i translate="no"><i>a</i>b</i>c', '<i translate="no"><i>a</i>b</i>C'),
        ('<p translate="no">a<br>b</p>c', '<p translate="no">a<br>b</p>C'),
        ("a &lt; b &amp; c", "A &lt; B &amp; C"),
        ("a < b", "A &lt; B"),
        ("<b>unclosed", "<b>UNCLOSED"),
        ("</b>stray", "</b>STRAY"),
    ],
)
def test_markup_stays_and_text_is_translated(page, expected):
    assert translated(page) == expected


def test_a_translation_cannot_become_markup():
    assert translated("<p>x</p>", lambda _: "<script>alert(1)</script>&") == (
        "<p>&lt;script&gt;alert(1)&lt;/script&gt;&amp;</p>"
    )


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, attributes))


def tags_of(page):
    reader = Tags()
    reader.feed(page)
    reader.close()
    return reader.found


@given(
    st.lists(st.sampled_from(["<p>", "</p>", "<b class='x'>", "a.", "&lt;", "<", "<!--", "-->"]))
)
def test_whatever_comes_in_has_the_same_tags_when_it_goes_out(pieces):
    page = " ".join(pieces)
    assert tags_of(translated(page, lambda _: "<i>&")) == tags_of(page)
