from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.documents.layout import Layout, take_apart
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
        ("</B >x", "</B >X"),
        ("a <b", "A &lt;B"),
        ("<![", "&lt;!["),
        ("<![if x]>y<![endif]>", "<![if x]>Y<![endif]>"),
        ("<?php x ?>y", "<?php x ?>Y"),
        ("x<!-- never closed <b>", "X<!-- never closed <b>"),
        ("<!--><b>x", "<!--><b>X"),
        ("<p title='a > b'>x</p>", "<p title='a > b'>X</p>"),
        ("<p title='translate=no'>x", "<p title='translate=no'>X"),
        ("<P Translate=NO>x</p>y", "<P Translate=NO>x</p>Y"),
        ("<SCRIPT>a</b></Script >x", "<SCRIPT>a</b></Script >X"),
        ("<title>a <b> c</title>x", "<title>A &lt;B&gt; C</title>X"),
        ("<code>&nbsp;&lt;</code>", "<code>&nbsp;&lt;</code>"),
    ],
)
def test_markup_stays_and_text_is_translated(page, expected):
    assert translated(page) == expected


def test_a_translation_cannot_become_markup():
    assert translated("<p>x</p>", lambda _: "<script>alert(1)</script>&") == (
        "<p>&lt;script&gt;alert(1)&lt;/script&gt;&amp;</p>"
    )


def markup_of(page):
    return [part for part in take_apart_html(page, split) if isinstance(part, str)]


PIECES = ["<p>", "</P>", "<b class='x'>", '<i x="', "a.", "&lt;", "<", "<!--", "-->", "<![", ">"]
PIECES += ["<script>", "</script>", "<code>", "</code>", "<br/>", "<title>", "</title", "\n"]


@given(st.lists(st.sampled_from(PIECES)), st.sampled_from(["", " "]))
def test_whatever_comes_in_has_the_same_markup_when_it_goes_out(pieces, space):
    page = space.join(pieces)
    assert translated(page, str) == translated(translated(page, str), str)
    assert markup_of(translated(page, lambda _: "<i>&")) == markup_of(page)


@pytest.mark.parametrize(
    "piece", ["<a ", "<a/", "<a b='", "<!--", "<!-- >", "<![CDATA[", "</a ", "<?"]
)
def test_markup_without_an_end_is_read_once(piece):
    """Python's own parser needs minutes for these."""
    page = piece * 30_000
    assert len(take_apart_html(page, lambda text: Layout(()))) == 1
