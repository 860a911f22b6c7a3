import io
import itertools

import pytest
import sentencepiece

from dragoman.errors import UserError
from dragoman.export.tokenizer_json import tokenizer_json
from dragoman.tokenizer import Tokenizer

LINES = [
    "the cat sees the old house",
    "",
    "  two  spaces ",
    "tab\there",
    "ﬁne Ⅳ",
    "😀 cat",
    "Äpfel",
]


def test_merging_by_the_list_gives_the_pieces_of_sentencepiece(content):
    """A BPE encoder of a few lines reads the list; the unigram model keeps its scores."""
    model = tokenizer_json(content.tokenizer)["model"]
    if model["type"] == "Unigram":
        assert [text for text, _ in model["vocab"]] == content.tokenizer.pieces
        assert model["unk_id"] == content.tokenizer.unknown
        return
    ranks = {tuple(pair.split(" ")): rank for rank, pair in enumerate(model["merges"])}
    for line in ("the cat sees", "das alte Haus", "Über öl"):
        found = []
        for word in line.split():
            symbols = ["\u2581", *word]
            while True:
                pairs = [pair for pair in itertools.pairwise(symbols) if pair in ranks]
                if not pairs:
                    break
                best = min(pairs, key=ranks.__getitem__)
                at = next(n for n in range(len(symbols)) if tuple(symbols[n : n + 2]) == best)
                symbols[at : at + 2] = ["".join(best)]
            found += symbols
        assert [model["vocab"][piece] for piece in found] == content.tokenizer.encode([line])[0][
            :-1
        ]


def test_special_pieces_are_named_and_the_end_is_added(content):
    written = tokenizer_json(content.tokenizer)
    assert [token["content"] for token in written["added_tokens"]] == [
        *("<pad>", "<unk>", "<s>", "</s>")
    ]
    assert written["post_processor"]["special_tokens"]["</s>"]["ids"] == [3]
    kinds = [step["type"] for step in written["normalizer"]["normalizers"]]
    assert kinds == ["Precompiled", "Strip", "Replace"]


def test_a_model_of_words_is_refused():
    learned = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a b c d e f g"] * 5),
        model_writer=learned,
        vocab_size=8,
        model_type="word",
        minloglevel=2,
    )
    with pytest.raises(UserError, match="bpe or unigram"):
        tokenizer_json(Tokenizer(learned.getvalue()))


def test_the_library_gives_the_ids_of_sentencepiece(content):
    tokenizers = pytest.importorskip("tokenizers")
    import json

    fast = tokenizers.Tokenizer.from_str(json.dumps(tokenizer_json(content.tokenizer)))
    for line in LINES:
        assert fast.encode(line).ids == content.tokenizer.encode([line])[0]
