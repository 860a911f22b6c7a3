"""The merges of a BPE model: the bytes of a SentencePiece model come in, segmentations go out.

SentencePiece can drop merges itself, but draws from a generator of the thread that nobody can
rewind. Here a segmentation is a function of the word and of one number. Without torch.
"""

import struct
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.errors import UserError
from dragoman.tokenizer import Tokenizer

SPACE = "\u2581"
"""How SentencePiece writes a space inside a piece."""
DRAWS = 1 << 64
"""A draw is a number from 0 to below this."""
_UNIT = 1 << 32  # shares are multiples of 1 / _UNIT

# Numbers of fields and values in sentencepiece_model.proto, which are fixed for ever.
_PIECES, _TRAINER = 1, 2
_TEXT, _SCORE, _KIND = 1, 2, 3
_MODEL_TYPE = 3
_NORMAL = 1
_MODEL_TYPES = {1: "unigram", 2: "BPE", 3: "word", 4: "character"}
_UNIGRAM, _BPE = 1, 2
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5


class Segmentation(NamedTuple):
    pieces: tuple[int, ...]
    low: int
    """Every draw from `low` to below `high` gives these pieces."""
    high: int


class Merges:
    """Which pieces merge into which, and in what order."""

    def __init__(self, model: bytes, why: str) -> None:
        """Refuses a model that is not BPE; `why` names the setting that needs one."""
        self.pieces: list[str] = []
        """By id."""
        self.is_normal: list[bool] = []
        """By id: made of text, and neither special nor a byte nor defined by a user."""
        self._ids: dict[str, int] = {}
        self._order: dict[str, float] = {}
        model_type = _UNIGRAM  # where a file names none
        for number, value in proto_fields(model):
            if number == _PIECES:
                self._add(value)
            elif number == _TRAINER:
                model_type = next(
                    (v for n, v in proto_fields(value) if n == _MODEL_TYPE), model_type
                )
        if model_type != _BPE:
            raise UserError(
                f"{why} drops merges, which only BPE models have, and this tokenizer is a "
                f"{_MODEL_TYPES.get(model_type, 'different')} model; set it to 0, or take one "
                'learned with tokenizer.kind = "bpe"'
            )

    def _add(self, piece: bytes) -> None:
        text, score, kind = "", 0.0, _NORMAL
        for number, value in proto_fields(piece):
            if number == _TEXT:
                text = value.decode("utf-8")
            elif number == _SCORE:
                (score,) = struct.unpack("<f", value)
            elif number == _KIND:
                kind = value
        self.is_normal.append(kind == _NORMAL)
        if kind == _NORMAL:
            self._ids[text] = len(self.pieces)
            self._order[text] = -score
        self.pieces.append(text)

    def segment(self, text: str, share: float, draw: int) -> Segmentation | None:
        """Merges the characters of a word, where each merge is dropped with probability `share`.

        As in SentencePiece, a merge that has been dropped at a place is not tried there again. The
        draw decides all of them, as in arithmetic coding: its range is cut in two at each merge,
        and the part in which it lies is the range of the next. None: a character is no piece.
        """
        symbols = list(text)
        if not all(character in self._ids for character in symbols):
            return None
        before = list(range(-1, len(symbols) - 1))
        after = list(range(1, len(symbols) + 1))
        order, end = self._order, len(symbols)
        agenda = [
            (order[pair], left, left + 1, 2)
            for left in range(end - 1)
            if (pair := symbols[left] + symbols[left + 1]) in order
        ]
        heapify(agenda)
        kept = round((1.0 - share) * _UNIT)
        low, high = 0, DRAWS
        while agenda:
            _, left, right, size = heappop(agenda)
            one, two = symbols[left], symbols[right]
            if not one or not two or len(one) + len(two) != size:
                continue  # one of them has been merged with another
            # Where the draw's randomness is used up, the remaining merges are kept.
            if high - low >= _UNIT:
                middle = low + ((high - low) * kept >> 32)
                if draw >= middle:
                    low = middle
                    continue
                high = middle
            symbols[left], symbols[right] = one + two, ""
            following = after[left] = after[right]
            if following < end:
                before[following] = left
            for first, second in ((before[left], left), (left, following)):
                if first >= 0 and second < end:
                    pair = symbols[first] + symbols[second]
                    if pair in order:
                        heappush(agenda, (order[pair], first, second, len(pair)))
        return Segmentation(tuple(self._ids[symbol] for symbol in symbols if symbol), low, high)


def check_merges(model: Path, share: float) -> None:
    """Refuses a tokenizer without merges, before anything is prepared with it."""
    Merges(Tokenizer.load(model).model, f"training.subword_dropout = {share}")


def proto_fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yields numbers and values of a protobuf message, which SentencePiece has read before."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield tag >> 3, value
            continue
        if kind == _BYTES:
            size, at = _varint(message, at)
        else:
            size = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}[kind]
        yield tag >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Returns a number of seven bits a byte, and where the next field begins."""
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
