import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.decoding.glossary import Glossary, Term, is_unspaced
from dragoman.errors import UserError


def glossary_of(*pairs):
    return Glossary([Term(source, target, n) for n, (source, target) in enumerate(pairs, 1)])


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The house is old.", ["Haus"]),
        ("HOUSE! House?", ["Haus"]),
        ("A warehouse, a housewife.", []),
        ("the White  House's lawn", ["Weißes Haus"]),
        ("the white house", ["Haus"]),
        ("a dog in a house by a dog", ["Hund", "Haus"]),
        ("Polish is hard", ["Polnisch"]),
        ("I polish it", ["polieren"]),
        ("cafe\u0301", ["Café"]),
        ("", []),
    ],
)
def test_terms_are_found_as_whole_words_longest_first(sentence, expected):
    glossary = glossary_of(
        ("house", "Haus"),
        ("White House", "Weißes Haus"),
        ("dog", "Hund"),
        ("polish", "polieren"),
        ("Polish", "Polnisch"),
        ("café", "Café"),
    )
    assert glossary.terms_in(sentence) == expected


def test_what_a_longer_term_covers_is_not_matched_again():
    glossary = glossary_of(("a b", "1"), ("b c", "2"), ("a b c", "3"), ("c", "4"))
    assert glossary.terms_in("a b c") == ["3"]
    assert glossary.terms_in("a b d c") == ["1", "4"]
    assert glossary.terms_in("b c a b") == ["2", "1"]


def test_scripts_without_spaces_need_none_and_marks_belong_to_their_letter():
    glossary = glossary_of(("房子", "house"), ("क", "ka"), ("C++", "C++"), ("👍", "good"))
    assert glossary.terms_in("这个房子很大") == ["house"]
    assert glossary.terms_in("कि") == []
    assert glossary.terms_in("क कि") == ["ka"]
    assert glossary.terms_in("C++, not C") == ["C++"]
    assert glossary.terms_in("fine 👍👍") == ["good"]
    assert is_unspaced("你")
    assert not is_unspaced("a")


def test_a_file_is_read_with_comments_empty_lines_and_repeated_lines_left_out(tmp_path):
    path = tmp_path / "terms.tsv"
    path.write_bytes(
        "\ufeff# mine\n\nhouse\t Haus \r\nold  man\talter Mann\nhouse\tHaus\n".encode()
    )
    glossary = Glossary.load(path)
    assert glossary.terms == (Term("house", "Haus", 3), Term("old man", "alter Mann", 4))
    assert glossary.origin == str(path)
    assert glossary.terms_in("the old man's house") == ["alter Mann", "Haus"]
    path.write_text("# nothing\n")
    assert Glossary.load(path).terms_in("the house") == []


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"a\tb\nhouse\n", 2),
        (b"house\t\n", 1),
        (b"\tHaus\n", 1),
        (b"a\tb\tc\n", 1),
        (b"\n\nhouse\tHaus\nhouse\tHeim\n", 4),
        (b"a\tb\n\xff\tc\n", 2),
        (b"\x00\x01\x02", 1),
    ],
)
def test_a_bad_line_is_named_in_one_sentence(tmp_path, content, line):
    path = tmp_path / "terms.tsv"
    path.write_bytes(content)
    with pytest.raises(UserError, match=rf"terms\.tsv:{line}: ") as caught:
        Glossary.load(path)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    for path in (tmp_path / "none.tsv", tmp_path):
        with pytest.raises(UserError, match=str(path)):
            Glossary.load(path)


@given(st.text())
def test_any_sentence_can_be_searched(sentence):
    glossary = glossary_of(("a", "1"), ("house of", "2"))
    assert set(glossary.terms_in(sentence)) <= {"1", "2"}
    assert "2" in glossary.terms_in(f"{sentence} house of {sentence}")
