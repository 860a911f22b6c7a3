import bz2
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.corpus.jsonl import read_jsonl
from dragoman.corpus.text import one_line
from dragoman.errors import UserError


def write(folder, content):
    path = folder / "a.jsonl"
    path.write_text(content, encoding="utf-8", newline="")
    return path


def test_texts_stand_under_two_keys(tmp_path):
    path = write(tmp_path, '{"en": "one", "de": "eins", "id": 1}\r\n{"de": "zwei", "en": "two"}')
    assert list(read_jsonl(path, "en", "de")) == [("one", "eins"), ("two", "zwei")]


def test_dots_lead_into_nested_objects(tmp_path):
    path = write(tmp_path, '{"translation": {"en": "one", "de": {"text": "eins"}}}\n')
    assert list(read_jsonl(path, "translation.en", "translation.de.text")) == [("one", "eins")]


def test_line_breaks_inside_a_text_become_spaces(tmp_path):
    path = write(tmp_path, r'{"en": "one\n\ttwo ", "de": "eins\r\nzwei"}')
    assert list(read_jsonl(path, "en", "de")) == [("one two", "eins zwei")]


def test_compressed_files_read_like_plain_ones(tmp_path):
    path = tmp_path / "a.jsonl.bz2"
    path.write_bytes(bz2.compress(b'{"en": "one", "de": "eins"}\n'))
    assert list(read_jsonl(path, "en", "de")) == [("one", "eins")]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"en": "two", "de":', "not JSON"),
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"en": ' + "1" * 5000 + "}", "not JSON"),
        ('{"en": "two"}', "there is no key de"),
        ('["two", "zwei"]', "there is no key en"),
        ('{"en": "two", "de": 2}', "the key de has 2, which is not a text"),
        ('{"en": null, "de": "zwei"}', "the key en has null, which is not a text"),
        (r'{"en": "two", "de": "\ud83d"}', "the key de has half a surrogate pair"),
    ],
)
def test_a_line_without_both_texts_is_refused_with_file_and_line(tmp_path, line, problem):
    path = write(tmp_path, '{"en": "one", "de": "eins"}\n' + line + "\n")
    with pytest.raises(UserError, match=rf"a\.jsonl, line 2: {problem}"):
        list(read_jsonl(path, "en", "de"))


def test_a_text_where_an_object_should_be_is_refused(tmp_path):
    path = write(tmp_path, '{"translation": "one"}\n')
    with pytest.raises(UserError, match=r"a\.jsonl, line 1: .*translation\.en"):
        list(read_jsonl(path, "translation.en", "translation.de"))


@given(text=st.text(st.characters(exclude_categories=["Cs"])), escaped=st.booleans())
def test_escapes_of_json_are_undone(tmp_path_factory, text, escaped):
    line = json.dumps({"en": text, "de": "x"}, ensure_ascii=escaped)
    path = write(tmp_path_factory.mktemp("json"), line)
    assert list(read_jsonl(path, "en", "de")) == [(one_line(text), "x")]
