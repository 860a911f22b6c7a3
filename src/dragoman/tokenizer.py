"""Text <-> ids. One joint SentencePiece model serves both languages."""

import io
import re
from array import array
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import sentencepiece

from dragoman.config import TokenizerSettings
from dragoman.errors import CorruptFileError, UserError

Ids = list[int]

_SPACE = "\u2581"  # how SentencePiece writes a space inside a piece
FEW_TEXTS = 32
"""For lists SentencePiece starts threads, which takes ten times as long as to encode one text."""
WORDS_REMEMBERED = 1_000_000
LONGEST_LEARNED_BYTES = 4192
"""SentencePiece skips longer lines. Its default: setting it would change the model's bytes."""
_LINES_AT_ONCE = 256  # few enough for their words to stay in the processor's cache


class Span(NamedTuple):
    """A piece and the characters of the text that it stands for, spaces in front included."""

    piece: int
    begin: int
    end: int


class Tokenizer:
    """A loaded SentencePiece model; `model` is its file's content, kept for checkpoints."""

    def __init__(self, model: bytes, origin: str = "tokenizer.model") -> None:
        try:
            self._pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
        except RuntimeError as error:
            raise CorruptFileError(f"{origin}: not a SentencePiece model; name another") from error
        self.model = model
        self.size: int = self._pieces.get_piece_size()
        self.end: int = self._pieces.eos_id()
        if self.end < 0:
            raise UserError(f"{origin}: has no end-of-sentence piece; learn it with an eos_id")
        # Models learned elsewhere may lack these two. Sequences carry their lengths, so the
        # padding's id is never read, and the end piece can start a translation as well.
        self.start: int = self._pieces.bos_id() if self._pieces.bos_id() >= 0 else self.end
        self.padding: int = self._pieces.pad_id() if self._pieces.pad_id() >= 0 else self.end
        self.unknown: int = self._pieces.unk_id()

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        try:
            return cls(path.read_bytes(), origin=str(path))
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror}); check the name") from error

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        """Returns each text as ids, ending with the end piece."""
        if len(texts) <= FEW_TEXTS:
            return [self._pieces.encode(text, out_type=int, add_eos=True) for text in texts]
        encoded: list[Ids] = self._pieces.encode(list(texts), out_type=int, add_eos=True)
        return encoded

    def spans(self, text: str) -> list[Span]:
        """Returns the pieces of a text, as `encode` without the end piece, and where they stand.

        A character that becomes several pieces belongs to the last of them; the others are empty.
        """
        _, offsets = self._pieces.normalize(text, with_offsets=True)
        ids = self._pieces.encode(text, out_type=int)
        spans, place = [], 0
        for piece, written in zip(ids, self._pieces.encode(text, out_type=str), strict=True):
            length = len(written)
            if self._pieces.is_byte(piece):  # <0xE4>; all bytes of a character but its first add 0
                length = int(int(written[1:-1], 16) & 0xC0 != 0x80)
            following = min(place + length, len(offsets) - 1)
            spans.append(Span(piece, offsets[place], offsets[following]))
            place = following
        return spans

    @cached_property
    def pieces(self) -> list[str]:
        """The text of each piece, by id."""
        return [self._pieces.id_to_piece(number) for number in range(self.size)]

    def splits_at_spaces(self) -> bool:
        """Returns whether encoding a line equals encoding its words one after the other."""
        if any(_SPACE in piece[1:] for piece in self.pieces):
            return False
        one, two = self._pieces.encode(["a", "a a"], out_type=int)
        return bool(two == one + one)

    def decode(self, sequences: Sequence[Ids]) -> list[str]:
        if len(sequences) <= FEW_TEXTS:
            return [self._pieces.decode(list(ids)) for ids in sequences]
        decoded: list[str] = self._pieces.decode(list(sequences))
        return decoded

    def surfaces(self, ids: Ids) -> list[str]:
        """Returns what each piece adds to the decoded text; together they are the text."""
        texts = ["", *self.decode([ids[:count] for count in range(1, len(ids) + 1)])]
        whole = texts[-1]
        # The first bytes of a character decode to other ones, which are gone with its last byte.
        lengths = (len(text) for text in reversed(texts))
        ends = list(accumulate(lengths, min))[::-1]
        return [whole[begin:end] for begin, end in pairwise(ends)]


class Encoded(NamedTuple):
    """The ids of texts one after the other, each ending with the end piece."""

    ids: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int64]
    """Of each text."""


def positions(
    begins: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Returns where the items of ranges are, range after range."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(begins - (ends - lengths), lengths) + np.arange(total)


class WordCache:
    """Encodes like its tokenizer, but each word only once: several times as fast on a corpus.

    Correct only if no piece spans a space, so models with such pieces, or with special treatment of
    the first word of a line, encode line by line as usual.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._is_right = tokenizer.splits_at_spaces()
        self._forget()

    def _forget(self) -> None:
        self._words: dict[str, int] = {}
        # By the number of a word: where its pieces begin, and how many there are.
        self._begins, self._lengths = array("q"), array("q")
        self._pieces = array("i")

    def encode(self, texts: Sequence[str]) -> Encoded:
        blocks = [
            self._encode(texts[begin : begin + _LINES_AT_ONCE])
            for begin in range(0, len(texts), _LINES_AT_ONCE)
        ]
        return Encoded(
            np.concatenate([np.zeros(0, np.int32), *(block.ids for block in blocks)]),
            np.concatenate([np.zeros(0, np.int64), *(block.lengths for block in blocks)]),
        )

    def _encode(self, texts: Sequence[str]) -> Encoded:
        if not self._is_right:
            encoded = self.tokenizer.encode(texts)
            ids = np.fromiter(chain.from_iterable(encoded), np.int32)
            return Encoded(ids, np.fromiter(map(len, encoded), np.int64, len(encoded)))
        rows = [text.split(" ") for text in texts]
        words = list(chain.from_iterable(rows))
        try:
            numbers = self._numbers(words)
        except KeyError:
            self._learn(words)
            numbers = self._numbers(words)
        begins, lengths = (
            np.frombuffer(of_words, np.int64)[numbers] for of_words in (self._begins, self._lengths)
        )
        pieces = np.frombuffer(self._pieces, np.intc)[positions(begins, lengths)]
        words_of_rows = np.fromiter(map(len, rows), np.int64, len(rows))  # one at least
        of_rows = np.add.reduceat(lengths, np.cumsum(words_of_rows) - words_of_rows)
        ids = np.insert(pieces, np.cumsum(of_rows), self.tokenizer.end)
        return Encoded(ids.astype(np.int32, copy=False), of_rows + 1)

    def _numbers(self, words: Sequence[str]) -> npt.NDArray[np.int64]:
        return np.fromiter(map(self._words.__getitem__, words), np.int64, len(words))

    def _learn(self, words: Iterable[str]) -> None:
        distinct = set(words)
        # Not `distinct - self._words.keys()`, which goes through all words that are remembered.
        unseen = [word for word in distinct if word not in self._words]
        if len(self._words) + len(unseen) > WORDS_REMEMBERED:
            self._forget()
            unseen = list(distinct)
        for word, ids in zip(unseen, self.tokenizer.encode(unseen), strict=True):
            self._words[word] = len(self._words)
            self._begins.append(len(self._pieces))
            self._lengths.append(len(ids) - 1)  # without the end piece
            self._pieces.extend(ids[:-1])


def missing_model(path: Path) -> UserError:
    """Returns what to say of a recipe whose `tokenizer.model` is not there."""
    return UserError(
        f"tokenizer.model = {str(path)!r}: no such file; put it there, or remove the key, and "
        "pieces are learned from the training text"
    )


def learn_tokenizer(
    texts: Iterable[str], settings: TokenizerSettings, is_logged: bool = False
) -> Tokenizer:
    """Learns pieces from lines of both languages. The same lines give the same bytes.

    If it `is_logged`, SentencePiece reports on standard error how far it is.
    """
    learned = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=learned,
            vocab_size=settings.vocabulary,
            model_type=settings.kind,
            character_coverage=settings.character_coverage,
            pad_id=0,
            unk_id=1,
            bos_id=2,
            eos_id=3,
            minloglevel=0 if is_logged else 2,
        )
    except RuntimeError as error:
        raise UserError(_why_not_learned(str(error), settings)) from error
    return Tokenizer(learned.getvalue())


def _why_not_learned(message: str, settings: TokenizerSettings) -> str:
    if largest := re.search(r"Vocabulary size too high.*<= (\d+)", message):
        return (
            f"tokenizer.vocabulary = {settings.vocabulary} is more than this text supports; "
            f"set it to at most {largest[1]}"
        )
    if smallest := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        return (
            f"tokenizer.vocabulary = {settings.vocabulary} is too small to hold every character "
            f"of this text; set it to at least {smallest[1]} or lower tokenizer.character_coverage"
        )
    if "sentences_.empty()" in message or "required_chars_.empty()" in message:
        return (
            "the tokenizer finds nothing to learn from, since all lines of the training text are "
            f"blank or longer than {LONGEST_LEARNED_BYTES:,} bytes; check the files of data.train"
        )
    return (
        "the tokenizer could not be learned from this text with tokenizer.vocabulary = "
        f"{settings.vocabulary}; check the files of data.train, or name an existing "
        f"model in tokenizer.model (SentencePiece: {message.strip()})"
    )
