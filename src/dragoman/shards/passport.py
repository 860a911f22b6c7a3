"""The data passport: what the prepared data is, where it came from, and how to recognize it.

`data.json` of a prepared folder comes in, typed values go out. Training reads prepared data only
through `PreparedData`.
"""

import hashlib
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from dragoman.config import LARGEST_INTEGER, above, between, problems_of
from dragoman.errors import CorruptFileError, UserError
from dragoman.rundir import MOST_JSON_BYTES, read_bounded, sha256_of
from dragoman.shards.files import FileName, ShardFile, Shards, is_tokens, verify_files
from dragoman.tokenizer import Tokenizer

PASSPORT_NAME = "data.json"
MOST_HASH_BYTES = 1000
REQUIRED_SPLITS = ("train", "validation")
HELD_OUT = ("validation", "test")
FETCHED = ".fetched"
"""Holds the hash of the data whose files come from an address."""


Count = Annotated[int, between(0, LARGEST_INTEGER)]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class InputFile(_Record):
    path: str
    bytes: Count
    modified_ns: Annotated[int, between(-LARGEST_INTEGER, LARGEST_INTEGER)]
    sha256: str


class Side(_Record):
    """One language of a split."""

    file: FileName | Literal[""]
    """File of every line as it was, for validation and test; empty for training (in slices)."""
    sha256: str = ""
    """Of the file; passports of older versions have none."""
    bytes: Count
    """Bytes of the text that is kept, line feeds included."""
    tokens: Count
    """Tokens that training sees in one epoch, end pieces included."""
    unknown_tokens: Count
    lengths: list[Count]
    """Numbers of sentences by length: under 8 pieces, under 16, ...; the last: all longer ones."""


class SourceRecord(_Record):
    """What became of one source of the recipe."""

    description: str
    weight: Annotated[float, above(0, 1e9)]
    pairs_in: Count
    pairs_kept: Count
    dropped: dict[str, Count]
    duplicates_of: list[Count] = []
    """Where there are several sources, by source: how many pairs were dropped as duplicates of a
    pair there. That pair is kept with the larger weight of both sources. Older passports have none,
    and an older version has kept the weight of the first source."""


class SetPart(_Record):
    """What one source has in the test text, where the sources follow each other."""

    test_set: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
    """The set that it belongs to."""
    description: str
    pairs: Count


class SplitRecord(_Record):
    pairs_in: Count
    pairs_kept: Count
    """Distinct pairs that are left; with weights an epoch may see more or fewer."""
    pairs_per_epoch: Count
    dropped: dict[str, Count]
    sources: list[SourceRecord]
    source: Side
    target: Side
    shards: list[ShardFile]
    parts: list[SetPart] = []
    """Of test, in order; passports of older versions have none."""

    @model_validator(mode="after")
    def parts_are_the_whole(self) -> Self:
        if self.parts and sum(part.pairs for part in self.parts) != self.pairs_in:
            raise ValueError("parts do not add up to pairs_in")
        return self


class Passport(_Record):
    key: str
    """Hash of everything that the data depends on; with the same key nothing is redone."""
    source_language: str
    target_language: str
    vocabulary: Annotated[int, between(1, LARGEST_INTEGER)]
    used_pieces: Count
    """Pieces that occur in the training data."""
    tokenizer_file: FileName
    tokenizer_sha256: str
    inputs: list[InputFile]
    splits: dict[Annotated[str, Field(pattern=r"^(train|validation|test)$")], SplitRecord]
    command: list[str]
    versions: dict[str, str]

    @model_validator(mode="after")
    def has_what_training_reads(self) -> Self:
        for split in REQUIRED_SPLITS:
            if split not in self.splits:
                raise ValueError(f"splits.{split} is missing")
        return self

    @property
    def test_sets(self) -> list[str]:
        """Returns the names of the test sets, in order; older passports have one for all text."""
        if "test" not in self.splits:
            return []
        return list(dict.fromkeys(part.test_set for part in self.splits["test"].parts)) or ["test"]

    @property
    def late_files(self) -> list[ShardFile]:
        """Returns the files of training tokens, without which a run can be planned."""
        return [*filter(is_tokens, self.splits["train"].shards)]

    @property
    def text_files(self) -> list[ShardFile]:
        """Returns the files of validation and test text whose hashes are known."""
        sides = [side for each in self.splits.values() for side in (each.source, each.target)]
        return [ShardFile(side.file, side.bytes, side.sha256) for side in sides if side.sha256]

    @property
    def content_hash(self) -> str:
        """Returns a hash of everything that training reads, equal for equal data."""
        hashes = [self.tokenizer_sha256]
        for split in REQUIRED_SPLITS:
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
            passport = Passport.model_validate_json(read_bounded(path, MOST_JSON_BYTES))
        except FileNotFoundError:
            raise UserError(
                f"{folder}: holds no prepared data; run `dragoman prepare` first"
            ) from None
        except (OSError, ValidationError) as error:
            why = error.strerror if isinstance(error, OSError) else problems_of(error)
            raise CorruptFileError(
                f"{path}: is not a data passport that this version can read ({why}); "
                f"remove the folder {folder} and prepare the data again"
            ) from error
        return cls(folder, passport)

    def tokenizer(self) -> Tokenizer:
        path = self.folder / self.passport.tokenizer_file
        tokenizer = Tokenizer.load(path)
        if tokenizer.size != self.passport.vocabulary:
            raise CorruptFileError(
                f"{path}: has {tokenizer.size:,} pieces instead of {self.passport.vocabulary:,}; "
                f"remove the folder {self.folder} and prepare the data again"
            )
        return tokenizer

    def shards(self, split: str) -> Shards:
        return Shards(self.folder, self.passport.splits[split].shards)

    def text(self, name: str) -> tuple[list[str], list[str]]:
        """Returns the source and target sentences of validation, of test or of one test set.

        They are as they were before tokenization.
        """
        split = name if name in HELD_OUT else "test"
        record = self.passport.splits.get(split)
        if record is None or name not in (*HELD_OUT, *self.passport.test_sets):
            raise self._no_such_set(name)
        source, target = (
            _read_lines(self.folder / side.file) for side in (record.source, record.target)
        )
        if len(source) != len(target):
            raise CorruptFileError(
                f"{self.folder}: its {split} text has {len(source):,} lines in one language and "
                f"{len(target):,} in the other; remove the folder and prepare the data again"
            )
        if name == split or not record.parts:
            return source, target
        if len(source) != record.pairs_in:
            raise CorruptFileError(
                f"{self.folder}: its {split} text has {len(source):,} lines instead of "
                f"{record.pairs_in:,}; remove the folder and prepare the data again"
            )
        is_of_set = [part.test_set == name for part in record.parts for _ in range(part.pairs)]
        return list(compress(source, is_of_set)), list(compress(target, is_of_set))

    def _no_such_set(self, name: str) -> UserError:
        if name == "test":
            return UserError("the recipe has no test data; add [[data.test]] to it")
        there = ["validation", *self.passport.test_sets]
        if len(self.passport.test_sets) > 1:
            there.append("test (all test sets)")
        return UserError(
            f"{self.folder}: holds no set {name!r}; name one of those that it holds: "
            f"{', '.join(there)}"
        )

    def files(self) -> list[str]:
        """Returns the files that training and evaluation read, the passport last."""
        names = [self.passport.tokenizer_file]
        for record in self.passport.splits.values():
            names += [shard.name for shard in record.shards]
            names += [side.file for side in (record.source, record.target) if side.file]
        return [*dict.fromkeys(names), PASSPORT_NAME]

    @property
    def is_fetched(self) -> bool:
        """Returns whether all files come from an address, so that they may be removed again."""
        try:
            fetched = read_bounded(self.folder / FETCHED, MOST_HASH_BYTES)
        except OSError:
            return False
        return fetched.decode(errors="replace").strip() == self.passport.content_hash

    def verify(self, may_lack_tokens: bool = False) -> None:
        """Compares tokenizer, shards and held-out text with their hashes in the passport.

        `may_lack_tokens`: files of training tokens that are not there are no fault.
        """
        tokenizer = self.folder / self.passport.tokenizer_file
        if not tokenizer.is_file() or sha256_of(tokenizer) != self.passport.tokenizer_sha256:
            raise CorruptFileError(f"{tokenizer}: is not what was prepared; prepare the data again")
        verify_files(self.folder, self.passport.text_files)
        lacking = [
            file
            for file in (self.passport.late_files if may_lack_tokens else [])
            if not (self.folder / file.name).exists()
        ]
        for record in self.passport.splits.values():
            verify_files(self.folder, [file for file in record.shards if file not in lacking])
            Shards(self.folder, record.shards).check_ids(self.passport.vocabulary, lacking)


def _read_lines(path: Path) -> list[str]:
    try:  # as bytes: text mode would end lines at carriage returns inside them too
        return path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise CorruptFileError(
            f"{path}: cannot be read ({error}); prepare the data again"
        ) from error
