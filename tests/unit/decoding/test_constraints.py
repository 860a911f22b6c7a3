import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import TokenizerSettings
from dragoman.decoding.constraints import (
    WORD_START,
    advance,
    amount_met,
    next_pieces,
    pattern_of,
    terms_of,
    word_starts,
)
from dragoman.decoding.glossary import Glossary, Term
from dragoman.errors import UserError
from dragoman.tokenizer import learn_tokenizer

STARTS = (True, True, False, False)  # pieces 0 and 1 start words, 2 and 3 continue them
PIECES = st.integers(0, 3)
PATTERN = st.tuples(st.lists(PIECES, min_size=1, max_size=4), st.booleans()).map(
    lambda drawn: (*drawn[0], WORD_START) if drawn[1] else tuple(drawn[0])
)


def occurs(pattern, ids):
    def fits(wanted, piece):
        return STARTS[piece] if wanted == WORD_START else wanted == piece

    places = range(len(ids) - len(pattern) + 1)
    return any(all(map(fits, pattern, ids[place : place + len(pattern)])) for place in places)


@given(st.lists(PATTERN, min_size=1, max_size=3), st.lists(PIECES, max_size=12))
def test_a_pattern_is_met_when_its_pieces_occur_in_a_row(patterns, ids):
    progress = (0,) * len(patterns)
    for n, piece in enumerate(ids):
        progress = advance(patterns, progress, ids[:n], piece, STARTS)
        for pattern, matched in zip(patterns, progress, strict=True):
            assert (matched == len(pattern)) == occurs(pattern, ids[: n + 1])


@given(st.lists(PATTERN, min_size=1, max_size=3), st.lists(PIECES, max_size=12))
def test_some_next_piece_always_leads_on_until_all_are_met(patterns, ids):
    progress = (0,) * len(patterns)
    for n, piece in enumerate(ids):
        progress = advance(patterns, progress, ids[:n], piece, STARTS)
    everything = sum(map(len, patterns))
    ids = list(ids)
    for _ in range(everything + 1):
        amount = amount_met(patterns, progress)
        wanted = [0 if piece == WORD_START else piece for piece in next_pieces(patterns, progress)]
        if not wanted:
            break
        options = [(advance(patterns, progress, ids, piece, STARTS), piece) for piece in wanted]
        progress, piece = max(options, key=lambda option: amount_met(patterns, option[0]))
        ids.append(piece)
        assert amount_met(patterns, progress) > amount
    assert amount_met(patterns, progress) == everything


TEXT = ["the cat sees the old house", "die Katze sieht das alte Haus", "fünf. Äpfel! 你好"] * 5


def test_a_term_is_whole_words_where_its_script_has_spaces():
    tokenizer = learn_tokenizer(TEXT, TokenizerSettings(vocabulary=60))
    starts = word_starts(tokenizer)
    assert starts[tokenizer.end]
    by_piece = dict(zip(tokenizer.pieces, starts, strict=True))
    assert by_piece["▁d"]
    assert by_piece["."]
    assert by_piece["你"]
    assert not by_piece["e"]
    assert not by_piece["ü"]
    house = pattern_of("Haus", tokenizer)
    assert house[-1] == WORD_START
    assert tokenizer.decode([list(house[:-1])]) == ["Haus"]
    assert pattern_of("Haus!", tokenizer)[-1] != WORD_START
    chinese = pattern_of("你好", tokenizer)
    assert WORD_START not in chinese
    assert "".join(tokenizer.pieces[piece] for piece in chinese) == "你好"


def test_a_term_that_cannot_be_written_is_refused_with_its_line():
    tokenizer = learn_tokenizer(TEXT, TokenizerSettings(vocabulary=60))
    terms = terms_of(Glossary([Term("house", "Haus", 4)]), tokenizer)
    assert terms.written == {"Haus": "Haus"}
    assert terms.patterns == {"Haus": pattern_of("Haus", tokenizer)}
    for target in ("Häuser🏠", "\u200b"):
        with pytest.raises(UserError, match=r"file\.tsv:7: "):
            terms_of(Glossary([Term("home", target, 7)], "file.tsv"), tokenizer)
