"""The data passport: what the prepared data is, where it came from, and how to recognize it.

`data.json` of a prepared folder comes in, typed values go out. Training reads prepared data only
through `PreparedData`.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from dragoman.errors import CorruptFileError, UserError
from dragoman.rundir import sha256_of
from dragoman.shards.files import ShardFile, Shards, verify_shards
from dragoman.tokenizer import Tokenizer

PASSPORT_NAME = "data.json"


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class InputFile(_Record):
    path: str
    bytes: int
    modified_ns: int
    sha256: str


class Side(_Record):
    """One language of a split."""

    file: str
    """Validation and test: every line as it was. Empty for training, whose text is in slices."""
    bytes: int
    """Of the text that is kept, line feeds included."""
    tokens: int
    """Of the pairs as training sees them in one epoch, end pieces included."""
    unknown_tokens: int
    lengths: list[int]
    """Sentences by length: under 8 pieces, under 16, and so on; the last: all that are longer."""


class SourceRecord(_Record):
    """What became of one source of the recipe."""

    description: str
    weight: float
    pairs_in: int
    pairs_kept: int
    dropped: dict[str, int]


class SplitRecord(_Record):
    pairs_in: int
    pairs_kept: int
    """Distinct pairs that are left; with weights an epoch may see more or fewer."""
    pairs_per_epoch: int
    dropped: dict[str, int]
    sources: list[SourceRecord]
    source: Side
    target: Side
    shards: list[ShardFile]


class Passport(_Record):
    key: str
    """Of everything that the data depends on; the same key means that nothing is to be redone."""
    source_language: str
    target_language: str
    vocabulary: int
    used_pieces: int
    """Pieces that occur in the training data."""
    tokenizer_file: str
    tokenizer_sha256: str
    inputs: list[InputFile]
    splits: dict[str, SplitRecord]
    command: list[str]
    versions: dict[str, str]

    @property
    def content_hash(self) -> str:
        """Of everything that training reads: two data sets with this hash in common are equal."""
        hashes = [self.tokenizer_sha256]
        for split in ("train", "validation"):
            hashes += [file.sha256 for file in self.splits[split].shards]
        return hashlib.sha256("\n".join(hashes).encode()).hexdigest()


@dataclass(frozen=True)
class PreparedData:
    folder: Path
    passport: Passport

    @classmethod
    def open(cls, folder: Path) -> "PreparedData":
        path = folder / PASSPORT_NAME
        try:
            passport = Passport.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            raise UserError(
                f"{folder}: holds no prepared data; run `dragoman prepare` first"
            ) from None
        except (OSError, ValidationError) as error:
            raise CorruptFileError(
                f"{path}: is not a data passport that this version can read; "
                f"remove the folder {folder} and prepare the data again"
            ) from error
        return cls(folder, passport)

    def tokenizer(self) -> Tokenizer:
        return Tokenizer.load(self.folder / self.passport.tokenizer_file)

    def shards(self, split: str) -> Shards:
        return Shards(self.folder, self.passport.splits[split].shards)

    def text(self, split: str) -> tuple[list[str], list[str]]:
        """Source and target sentences of a split as they were before tokenization."""
        record = self.passport.splits.get(split)
        if record is None:
            raise UserError(f"the recipe has no {split} data; add [[data.{split}]] to it")
        return _read_lines(self.folder / record.source.file), _read_lines(
            self.folder / record.target.file
        )

    def files(self) -> list[str]:
        """All that training and evaluation read, relative to the folder; the passport last."""
        names = [self.passport.tokenizer_file]
        for record in self.passport.splits.values():
            names += [shard.name for shard in record.shards]
            names += [side.file for side in (record.source, record.target) if side.file]
        return [*dict.fromkeys(names), PASSPORT_NAME]

    def verify(self) -> None:
        """Compare tokenizer and shards with their hashes in the passport."""
        tokenizer = self.folder / self.passport.tokenizer_file
        if not tokenizer.is_file() or sha256_of(tokenizer) != self.passport.tokenizer_sha256:
            raise CorruptFileError(f"{tokenizer}: is not what was prepared; prepare the data again")
        for record in self.passport.splits.values():
            verify_shards(self.folder, record.shards)


def _read_lines(path: Path) -> list[str]:
    try:  # as bytes: text mode would end lines at carriage returns inside them too
        return path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise CorruptFileError(
            f"{path}: cannot be read ({error}); prepare the data again"
        ) from error
