from dragoman.config import TokenizerSettings
from dragoman.decoding.constraints import pattern_of, terms_of
from dragoman.decoding.glossary import Glossary, Term
from dragoman.decoding.parts import parts_of
from dragoman.decoding.splitting import Piece
from dragoman.tokenizer import learn_tokenizer

TEXT = ["the cat sees the old house", "die Katze sieht das alte Haus"] * 5
TOKENIZER = learn_tokenizer(TEXT, TokenizerSettings(vocabulary=40))


def parts(*lines, **options):
    encoded = TOKENIZER.encode([piece for line in lines for piece in line])
    pieces = [[Piece(text, True) for text in line] for line in lines]
    return parts_of(pieces, encoded, TOKENIZER, **options), encoded


def test_ordinary_text_has_nothing_special():
    found, encoded = parts(["the cat"], [""], ["the old", "house"])
    assert found == {}
    assert encoded == TOKENIZER.encode(["the cat", "", "the old", "house"])


def test_unknown_characters_at_the_ends_are_not_searched():
    found, encoded = parts(["the cat"], ["👍 the cat"], ["👍"], ["the 👍 cat"])
    assert list(found) == [1, 2, 3]
    assert encoded[1] == encoded[0]
    assert encoded[2] == [TOKENIZER.end]
    assert (found[1].before, found[1].text, found[1].runs) == ("👍 ", "the cat", ())
    assert not found[1].is_attentive
    assert found[3].is_attentive
    assert encoded[3] == TOKENIZER.encode(["the 👍 cat"])[0]


def test_a_name_with_unknown_letters_is_one_run():
    found, encoded = parts(["the cat sees Łóthź old house"])
    (run,) = found[0].runs
    assert found[0].text[run.begin : run.end] == "Łóthź"
    assert encoded[0].count(TOKENIZER.unknown) == 1
    assert encoded[0] == TOKENIZER.encode(["the cat sees Ł old house"])[0]


def test_a_prefix_is_one_of_the_first_piece_with_text():
    found, _ = parts(
        ["the cat", "the house"], ["", "sees"], [""], prefixes=["  die\tKat", "x", "y"]
    )
    assert {number: part.prefix for number, part in found.items()} == {0: "die Kat", 3: "x"}
    assert [*found[0].prefix_ids, TOKENIZER.end] == TOKENIZER.encode(["die Kat"])[0]
    found, encoded = parts(["👍 the cat 👍"], prefixes=["👍 die"])
    assert (found[0].before, found[0].after) == ("", "")
    assert encoded == TOKENIZER.encode(["👍 the cat 👍"])


def test_terms_belong_to_the_piece_that_has_them():
    glossary = Glossary([Term("house", "Haus", 1), Term("👍", "das", 2)])
    terms = terms_of(glossary, TOKENIZER)
    found, encoded = parts(["the cat", "the house"], ["👍"], terms=terms)
    assert {number: part.patterns for number, part in found.items()} == {
        1: (pattern_of("Haus", TOKENIZER),),
        2: (pattern_of("das", TOKENIZER),),
    }
    assert len(encoded[2]) > 1


def test_unknown_characters_that_a_term_translates_are_not_copied():
    terms = terms_of(Glossary([Term("łóth", "Haus", 1), Term("👍", "das", 2)]), TOKENIZER)
    found, encoded = parts(["the Łóth sees 👍"], ["the Łóth sees 👎"], terms=terms)
    assert [(part.runs, part.after) for part in found.values()] == [((), ""), ((), " 👎")]
    assert encoded[0].count(TOKENIZER.unknown) == 2


def test_a_text_of_a_term_and_invisible_characters_is_searched():
    terms = terms_of(Glossary([Term("Łó", "Haus", 1)]), TOKENIZER)
    for text in ("Łó", "\u200b Łó"):
        found, encoded = parts([text], terms=terms)
        assert found[0].patterns == (pattern_of("Haus", TOKENIZER),)
        assert encoded[0] == [*TOKENIZER.encode(["Ł"])[0]]


def test_what_is_aligned_is_all_special():
    found, _ = parts(["the cat"], [""], ["house"], is_aligned=True)
    assert list(found) == [0, 2]
    assert all(part.is_attentive for part in found.values())
