"""The data passport: what the prepared data is, where it came from, and how to recognize it.

`data.json` of a prepared folder comes in, typed values go out. Training reads prepared data only
through `PreparedData`.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from dragoman.errors import CorruptFileError, UserError
from dragoman.shards.files import ShardFile, Shards, verify_shards
from dragoman.tokenizer import Tokenizer

PASSPORT_NAME = "data.json"
TOKENIZER_NAME = "tokenizer.model"


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
    bytes: int
    sha256: str
    tokens: int
    unknown_tokens: int


class SplitRecord(_Record):
    pairs_in: int
    pairs_kept: int
    dropped: dict[str, int]
    source: Side
    target: Side
    shards: list[ShardFile]


class Passport(_Record):
    settings_sha256: str
    """Of the settings that the result depends on, the version of the project included."""
    source_language: str
    target_language: str
    vocabulary: int
    tokenizer_sha256: str
    inputs: list[InputFile]
    splits: dict[str, SplitRecord]
    versions: dict[str, str]

    @property
    def content_hash(self) -> str:
        """Of everything that training reads: two data sets with this hash in common are equal."""
        hashes = [self.tokenizer_sha256]
        hashes += [file.sha256 for split in self.splits.values() for file in split.shards]
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
        return Tokenizer.load(self.folder / TOKENIZER_NAME)

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

    def verify(self) -> None:
        """Compare every shard with its hash in the passport."""
        for record in self.passport.splits.values():
            verify_shards(self.folder, record.shards)


def _read_lines(path: Path) -> list[str]:
    try:  # as bytes: text mode would end lines at carriage returns inside them too
        return path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise CorruptFileError(
            f"{path}: cannot be read ({error}); prepare the data again"
        ) from error
