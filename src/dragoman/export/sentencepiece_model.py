"""The content of a SentencePiece model: bytes come in, pieces and settings go out."""

import struct
from typing import NamedTuple

from dragoman.batches.merges import proto_fields

# Numbers of fields and values in sentencepiece_model.proto, which are fixed for ever.
_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3
_TEXT, _SCORE, _KIND = 1, 2, 3
_MODEL_TYPE = 3
_CHARACTER_MAP, _DUMMY_PREFIX, _EXTRA_SPACES = 2, 3, 4
UNIGRAM, BPE = 1, 2
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6


class ScoredPiece(NamedTuple):
    text: str
    score: float
    kind: int


class PieceModel(NamedTuple):
    pieces: list[ScoredPiece]
    """By id."""
    model_type: int
    character_map: bytes
    """How characters are normalized, compiled; empty: not at all."""
    adds_prefix: bool
    """A space is put before the text."""
    removes_spaces: bool
    """Spaces at the ends and repeated ones go."""


def read_piece_model(model: bytes) -> PieceModel:
    """Reads what SentencePiece has read before, so that it is known to be well-formed."""
    pieces = []
    model_type, character_map, adds_prefix, removes_spaces = UNIGRAM, b"", True, True
    for number, value in proto_fields(model):
        if number == _PIECES:
            pieces.append(_piece_of(value))
        elif number == _TRAINER:
            fields = dict(proto_fields(value))
            model_type = fields.get(_MODEL_TYPE, UNIGRAM)
        elif number == _NORMALIZER:
            fields = dict(proto_fields(value))
            character_map = fields.get(_CHARACTER_MAP, b"")
            adds_prefix = bool(fields.get(_DUMMY_PREFIX, 1))
            removes_spaces = bool(fields.get(_EXTRA_SPACES, 1))
    return PieceModel(pieces, model_type, character_map, adds_prefix, removes_spaces)


def _piece_of(message: bytes) -> ScoredPiece:
    fields = dict(proto_fields(message))
    (score,) = struct.unpack("<f", fields.get(_SCORE, bytes(4)))
    return ScoredPiece(fields.get(_TEXT, b"").decode("utf-8"), score, fields.get(_KIND, NORMAL))
