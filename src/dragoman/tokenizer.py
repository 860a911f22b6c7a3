"""Text <-> ids. One joint SentencePiece model serves both languages."""

import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import sentencepiece

from dragoman.config import TokenizerSettings
from dragoman.errors import CorruptFileError, UserError

Ids = list[int]


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
        # padding's id is never looked at, and the end piece can start a translation as well.
        self.start: int = self._pieces.bos_id() if self._pieces.bos_id() >= 0 else self.end
        self.padding: int = self._pieces.pad_id() if self._pieces.pad_id() >= 0 else self.end
        self.unknown: int = self._pieces.unk_id()

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        try:
            return cls(path.read_bytes(), origin=str(path))
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror}); check the name") from error

    def encode(self, texts: Sequence[str], threads: int = 1) -> list[Ids]:
        """Each text as ids, ending with the end piece."""
        encoded: list[Ids] = self._pieces.encode(
            list(texts), out_type=int, add_eos=True, num_threads=threads
        )
        return encoded

    def decode(self, sequences: Sequence[Ids]) -> list[str]:
        decoded: list[str] = self._pieces.decode(list(sequences))
        return decoded


def learn_tokenizer(texts: Iterable[str], settings: TokenizerSettings) -> Tokenizer:
    """Learn pieces from lines of both languages. The same lines give the same bytes."""
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
            minloglevel=2,
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
    if "required_chars" in message or "smaller than" in message:
        return (
            f"tokenizer.vocabulary = {settings.vocabulary} is too small to hold every character "
            "of this text; raise it or lower tokenizer.character_coverage"
        )
    return f"the tokenizer could not be learned from this text: {message.strip()}"
