import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import TokenizerSettings
from dragoman.decoding.engine import Hypothesis
from dragoman.decoding.parts import parts_of
from dragoman.decoding.rendering import copied, plain_text, render
from dragoman.decoding.splitting import Piece
from dragoman.decoding.translation import words_of
from dragoman.tokenizer import learn_tokenizer

TEXT = ["the cat sees the old house", "die Katze sieht das alte Haus"] * 5
TOKENIZER = learn_tokenizer(TEXT, TokenizerSettings(vocabulary=40))
UNKNOWN = TOKENIZER.unknown


def part_of(text, prefix="", aligned=False):
    encoded = TOKENIZER.encode([text])
    parts = parts_of([[Piece(text)]], encoded, TOKENIZER, [prefix], is_aligned=aligned)
    return parts[0]


def ids_of(text):
    return TOKENIZER.encode([text])[0][:-1]


def diagonal(ids, part):
    """Attention of the n-th piece to the n-th."""
    rows = np.zeros((len(ids), len(part.spans)), dtype=np.float32)
    for n in range(len(ids)):
        rows[n, min(n, len(part.spans) - 1)] = 1.0
    return rows


def test_what_the_model_writes_for_an_unknown_run_becomes_the_run():
    part = part_of("the 👍 cat 你好 sees")
    ids = ids_of("die 👍 Katze 你好 sieht")
    attention = np.zeros((len(ids), len(part.spans)), dtype=np.float32)
    first, second = (n for n, piece in enumerate(ids) if piece == UNKNOWN)
    attention[first, part.runs[1].piece] = attention[second, part.runs[0].piece] = 1.0
    assert render(Hypothesis(ids, -1.0, attention), part, TOKENIZER) == (
        "die 你好 Katze 👍 sieht",
        -1.0,
        (),
    )


def test_what_it_leaves_out_comes_behind_the_word_that_attends_to_it():
    part = part_of("the 👍 cat sees")
    ids = ids_of("die Katze sieht")
    attention = np.zeros((len(ids), len(part.spans)), dtype=np.float32)
    attention[len(ids_of("die")), part.runs[0].piece] = 1.0
    assert render(Hypothesis(ids, -1.0, attention), part, TOKENIZER).text == "die Katze 👍 sieht"
    assert render(Hypothesis(ids, -1.0), part, TOKENIZER).text == "die Katze sieht 👍"


def test_runs_at_the_ends_come_back_there_as_they_were():
    part = part_of("👍🎉 the cat🎉")
    assert render(Hypothesis(ids_of("die Katze"), -1.0), part, TOKENIZER).text == "👍🎉 die Katze🎉"
    assert render(Hypothesis([], -1.0), part, TOKENIZER).text == "👍🎉 🎉"
    alone = part_of("你好\u3000世界", aligned=True)
    assert copied(alone).text == "你好 世界"
    assert words_of(copied(alone).links, "你好\u3000世界", "你好 世界") == ((0, 0), (1, 1))
    assert copied(part_of("你好", prefix="die")).text == "die 你好"


def test_a_prefix_is_there_to_the_letter():
    for prefix in ("die", "die Kat", "ﬁ 👍 die", "x\u200by", "\u200b"):
        part = part_of("the 👍 cat", prefix=prefix)
        ids = [*part.prefix_ids, *ids_of("sieht")]
        text = render(Hypothesis(ids, -1.0, diagonal(ids, part)), part, TOKENIZER).text
        assert text.startswith(prefix)
        assert "sieht" in text
        assert text.count("👍") == 1
        assert "⁇" not in text


def test_links_name_words_also_beside_what_was_set_aside():
    source = "👍 the cat 🎉"
    part = part_of(source, aligned=True)
    ids = ids_of("the cat")
    text, _, links = render(Hypothesis(ids, -1.0, diagonal(ids, part)), part, TOKENIZER)
    assert text == source
    assert words_of(links, source, text) == ((0, 0), (1, 1), (2, 2), (3, 3))


def test_unknown_pieces_that_stand_for_nothing_are_dropped():
    ids = [*ids_of("die"), UNKNOWN, *ids_of("Katze"), UNKNOWN]
    assert plain_text(ids, TOKENIZER) == "die Katze"


@given(
    st.text(alphabet="thecat 👍你", max_size=12),
    st.lists(st.integers(0, 39), max_size=8),
    st.sampled_from(["", "die", "👍 die", "你"]),
    st.integers(0, 100),
)
def test_every_unknown_run_is_in_the_text_once_and_no_mark_for_one(source, ids, prefix, seed):
    source = source.strip()
    if not source:
        return
    part = part_of(source, prefix, aligned=True)
    ids = [*part.prefix_ids, *ids]
    attention = np.random.default_rng(seed).random((len(ids), len(part.spans)), dtype=np.float32)
    text = render(Hypothesis(ids, -1.0, attention), part, TOKENIZER).text
    assert "⁇" not in text
    assert text.startswith(prefix)
    for character in "👍你":
        assert text.count(character) >= source.count(character)
        if not prefix:
            assert text.count(character) == source.count(character)
    assert text == text.strip()
