import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import CleaningSettings
from dragoman.corpus.cleaning import EXAMPLES_KEPT, clean, keys, normalized
from dragoman.corpus.pair import Pair

DEFAULT = CleaningSettings()


def reason(source, target, pair_languages=("en", "de"), **settings):
    cleaned = clean([Pair(source, target)], CleaningSettings(**settings), pair_languages)
    assert len(cleaned.pairs) + cleaned.dropped.total() == 1
    return next(iter(cleaned.dropped), None)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("A cat.", "Eine Katze.", None),
        ("", "", "both sides empty"),
        ("", "Katze", "source empty"),
        ("cat", "\t ", "target empty"),
        ("cat", "K" * 2001, "longer than cleaning.max_characters"),
        ("cat", "Das ist doch keine Katze.", "sides of very different length"),
        ("OK", "In Ordnung", None),
        ("A ca\x07t.", "Eine Katze.", "control characters"),
        ("A cat.", "Eine K\ufffdtze.", "control characters"),
        ("A\tcat.", "Eine\u00a0Katze.", None),
        ("Berlin", "Berlin", "copy of the source"),
        ("2026-11-15", "2026-11-15", None),
        ("A cat.", "Кошка сидит.", "wrong script"),
        ("Кошка сидит.", "Eine Katze.", "wrong script"),
        ("The letter Ж.", "Der Buchstabe Ж.", None),
        ("Naïve café, Øresund", "Ståle übt Tiếng Việt", None),
    ],
)
def test_each_fault_has_its_reason(source, target, expected):
    assert reason(source, target) == expected


def test_scripts_follow_from_the_languages():
    assert reason("Кошка", "Katze", ("ru", "de")) is None
    assert reason("Cat", "Katze", ("ru", "de")) == "wrong script"
    assert reason("猫が座っています", "一只猫坐着", ("ja", "zh")) is None
    assert reason("Cat", "кошка", ("xx", "yy")) is None
    assert reason("Cat", "Кошка", ("en-US", "sr_RS")) is None


def test_checks_can_be_turned_off():
    assert reason("Berlin", "Berlin", drop_copies=False) is None
    assert reason("A cat.", "Кошка сидит.", scripts=False) is None
    assert reason("cat", "Das ist doch keine Katze.", max_ratio=50.0) is None


def test_text_in_another_language_is_found_where_the_identifier_is_installed():
    pytest.importorskip("pycld2")
    english = "This sentence is surely written in the English language, as everybody can see."
    german = "Dieser Satz ist ganz sicher in deutscher Sprache geschrieben, wie jeder sieht."
    french = "Cette phrase est certainement écrite en langue française, comme chacun le voit."
    assert reason(english, german, languages=True) is None
    assert reason(french, german, languages=True) == "source in another language"
    assert reason(english, french, languages=True) == "target in another language"


def test_normalizing_gives_one_form_and_single_spaces():
    decomposed = Pair("cafe\u0301  au\tlait ", "\u00a0Ma\u0308dchen")
    assert normalized(decomposed, DEFAULT) == ("café au lait", "Mädchen")
    wide = Pair("ＡＢＣ", "x²")
    assert normalized(wide, CleaningSettings(unicode_form="NFKC")) == ("ABC", "x2")
    assert normalized(wide, DEFAULT) == wide


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"])),
            st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"])),
        ),
        max_size=6,
    )
)
def test_neighbors_in_a_block_do_not_matter(pairs):
    """Blocks are looked at as a whole first; what comes out must be as if each stood alone."""
    together = clean([Pair(*pair) for pair in pairs], DEFAULT, ("en", "de"))
    alone = [clean([Pair(*pair)], DEFAULT, ("en", "de")) for pair in pairs]
    assert together.pairs == [pair for cleaned in alone for pair in cleaned.pairs]
    assert together.dropped == sum((cleaned.dropped for cleaned in alone), type(together.dropped)())


def test_some_examples_of_each_reason_are_kept():
    cleaned = clean([Pair("", "x")] * 100 + [Pair("same", "same")], DEFAULT, ("en", "de"))
    assert cleaned.dropped == {"source empty": 100, "copy of the source": 1}
    assert len(cleaned.examples["source empty"]) == EXAMPLES_KEPT
    assert cleaned.examples["copy of the source"] == [("same", "same")]


def same(one, other, **settings):
    found = keys([Pair(*one), Pair(*other)], CleaningSettings(**settings))
    return found[0] == found[1]


def test_near_duplicates_differ_in_case_punctuation_digits_and_spaces_alone():
    assert same(("A cat!", "Eine Katze."), ("a  CAT", "eine katze 2"))
    assert not same(("A cat!", "Eine Katze."), ("A cat!", "Ein Kater."))
    assert not same(("A cat", "x"), ("A ca", "tx"))
    assert not same(("2026", "2026"), ("1999", "1999"))
    assert same(("STRASSE", "x y"), ("straße", "xy"))


def test_exact_duplicates_are_equal_to_the_letter():
    assert same(("A cat!", "Katze"), ("A cat!", "Katze"), duplicates="exact")
    assert not same(("A cat!", "Katze"), ("a cat!", "Katze"), duplicates="exact")


def test_keys_are_the_same_on_every_machine():
    assert keys([Pair("A cat.", "Eine Katze.")], DEFAULT).tolist() == [781488046267749743]
    assert keys([], DEFAULT).tolist() == []
