"""A SentencePiece model as tokenizer.json, which the `tokenizers` library of Hugging Face reads."""

import base64
from typing import Any

from dragoman.errors import UserError
from dragoman.export.sentencepiece_model import (
    BPE,
    BYTE,
    CONTROL,
    NORMAL,
    UNIGRAM,
    UNKNOWN,
    USER_DEFINED,
    PieceModel,
    read_piece_model,
)
from dragoman.tokenizer import Tokenizer

_SPACE = "\u2581"  # how SentencePiece writes a space inside a piece


def tokenizer_json(tokenizer: Tokenizer) -> dict[str, Any]:
    """Returns the content of tokenizer.json; text becomes the ids that SentencePiece gives it."""
    model = read_piece_model(tokenizer.model)
    if model.model_type not in (UNIGRAM, BPE):
        raise UserError(
            "Hugging Face's tokenizers know no SentencePiece models of words or characters; "
            "export to another format, or train with a tokenizer of kind bpe or unigram"
        )
    end = tokenizer.pieces[tokenizer.end]
    scheme = "always" if model.adds_prefix else "never"
    spaces = {"type": "Metaspace", "replacement": _SPACE, "prepend_scheme": scheme, "split": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added_tokens(model),
        "normalizer": _normalizer(model),
        "pre_tokenizer": spaces,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [_sequence("A"), _special(end)],
            "pair": [_sequence("A"), _sequence("B"), _special(end)],
            "special_tokens": {end: {"id": end, "ids": [tokenizer.end], "tokens": [end]}},
        },
        "decoder": spaces,
        "model": _unigram(model) if model.model_type == UNIGRAM else _bpe(model),
    }


def _added_tokens(model: PieceModel) -> list[dict[str, Any]]:
    """Returns pieces that are found in a text before all others; special ones are left out when
    pieces become text."""
    return [
        {
            "id": number,
            "content": piece.text,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": piece.kind != USER_DEFINED,
        }
        for number, piece in enumerate(model.pieces)
        if piece.kind in (UNKNOWN, CONTROL, USER_DEFINED)
    ]


def _normalizer(model: PieceModel) -> dict[str, Any]:
    steps: list[dict[str, Any]] = []
    if model.character_map:
        characters = base64.b64encode(model.character_map).decode()
        steps.append({"type": "Precompiled", "precompiled_charsmap": characters})
    if model.removes_spaces:
        steps.append({"type": "Strip", "strip_left": True, "strip_right": True})
        steps.append({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})
    return {"type": "Sequence", "normalizers": steps}


def _unigram(model: PieceModel) -> dict[str, Any]:
    kinds = [piece.kind for piece in model.pieces]
    return {
        "type": "Unigram",
        "unk_id": kinds.index(UNKNOWN),
        "vocab": [[piece.text, piece.score] for piece in model.pieces],
        "byte_fallback": BYTE in kinds,
    }


def _bpe(model: PieceModel) -> dict[str, Any]:
    kinds = [piece.kind for piece in model.pieces]
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": model.pieces[kinds.index(UNKNOWN)].text,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": True,
        "byte_fallback": BYTE in kinds,
        "vocab": {piece.text: number for number, piece in enumerate(model.pieces)},
        "merges": _merges(model),
    }


def _merges(model: PieceModel) -> list[str]:
    """Returns all pairs of pieces that make a piece, in the order in which they are merged.

    SentencePiece keeps no list: it merges the pair that makes the piece with the best score. Pairs
    are written with a space between them, which no piece contains: releases of `tokenizers` before
    0.20 read no other form, and later ones read it too.
    """
    scores = {piece.text: piece.score for piece in model.pieces if piece.kind == NORMAL}
    pairs = [
        (-score, text, cut)
        for text, score in scores.items()
        for cut in range(1, len(text))
        if text[:cut] in scores and text[cut:] in scores
    ]
    return [f"{text[:cut]} {text[cut:]}" for _, text, cut in sorted(pairs)]


def _sequence(name: str) -> dict[str, Any]:
    return {"Sequence": {"id": name, "type_id": 0}}


def _special(piece: str) -> dict[str, Any]:
    return {"SpecialToken": {"id": piece, "type_id": 0}}
