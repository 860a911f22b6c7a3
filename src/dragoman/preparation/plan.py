"""Plans the preparation: the stages of a recipe, their folders and what they depend on."""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pydantic import BaseModel, ValidationError

from dragoman import __version__
from dragoman.config import Config, TextSource, problems_of
from dragoman.console import Progress
from dragoman.corpus.sources import SPLITS, Split, files_of, input_files, sources_of
from dragoman.corpus.text import regular_file_status
from dragoman.errors import CorruptFileError, UserError
from dragoman.preparation import slices
from dragoman.preparation.stage import Stage, key_of
from dragoman.preparation.task import changed
from dragoman.rundir import read_json, write_json
from dragoman.shards.passport import PASSPORT_NAME, InputFile
from dragoman.tokenizer import missing_model

INPUTS_NAME = "inputs.json"
BLOCK_BYTES = 1 << 20
HELD_OUT: tuple[Split, ...] = ("validation", "test")


class _InputsFile(BaseModel):
    """inputs.json: every file that was read, so that it is hashed once."""

    files: list[InputFile]


@dataclass(frozen=True)
class Plan:
    """Names and keys of all stages of a recipe."""

    config: Config
    inputs: list[InputFile]

    @property
    def folder(self) -> Path:
        return self.config.prepared_folder

    @cached_property
    def clean(self) -> Stage:
        data = self.config.data
        sources = [s.model_dump(mode="json", exclude={"weight", "test_set"}) for s in data.train]
        languages = data.source_language, data.target_language
        cleaning = self.config.cleaning.model_dump(mode="json", exclude={"drop_leaks"})
        inputs = self._hashes("train")
        sizes = slices.FIRST_PAIRS, slices.PAIRS_PER_SLICE, slices.CHARACTERS_PER_SLICE
        return self._stage("clean", __version__, sources, languages, cleaning, inputs, sizes)

    @cached_property
    def index(self) -> Stage:
        """Where the slices of each training source begin in its files."""
        return self._stage("index", self.clean.folder.name)

    @cached_property
    def held_out(self) -> Stage:
        data = self.config.data
        sources = [
            # The names of test sets are in the passport alone: another name changes no text.
            s.model_dump(mode="json", exclude={"test_set"})
            for split in HELD_OUT
            for s in sources_of(data, split)
        ]
        return self._stage("held-out", __version__, sources, self._hashes(*HELD_OUT))

    @cached_property
    def kept(self) -> Stage:
        leaks = self.config.cleaning.drop_leaks
        return self._stage("kept", self.clean.folder.name, leaks and self.held_out.folder.name)

    @cached_property
    def overlap(self) -> Stage:
        """What training sources have in common; there is nothing in it unless `has_overlap`."""
        return self._stage("overlap", self.kept.folder.name, self._weights)

    @property
    def has_overlap(self) -> bool:
        """Whether duplicates between sources are dropped."""
        return len(self._weights) > 1 and self.config.cleaning.duplicates != "keep"

    @property
    def has_larger_weights(self) -> bool:
        """Whether pairs that occur in several sources have to keep the larger of their weights."""
        return self.has_overlap and len(set(self._weights)) > 1

    @cached_property
    def tokenizer(self) -> Stage:
        settings = self.config.tokenizer
        given = self.inputs[-1].sha256 if settings.model else ""
        learned = "" if given else (settings.model_dump(mode="json"), self.kept.folder.name)
        return self._stage("tokenizer", given, learned)

    @cached_property
    def shards(self) -> Stage:
        # Shards without larger weights are those of older versions, which are not made again.
        larger = ["larger weights"] if self.has_larger_weights else []
        return self._stage(
            "shards",
            *(self.kept.folder.name, self.held_out.folder.name, self.tokenizer.folder.name),
            *(self._weights, self.config.data.max_length, *larger),
        )

    def sorted(self, ranges: int) -> Stage:
        """The keys of each slice in order, for as many ranges; only while they are compared."""
        return self._stage("sorted", self.clean.folder.name, ranges)

    def compared(self, ranges: int) -> Stage:
        """What each range of keys decides; only until it is known for each slice."""
        return self._stage("compared", self.kept.folder.name, self.overlap.folder.name, ranges)

    def sample(self, every: int) -> Stage:
        """Every n-th pair that stays; only while pieces are learned from them."""
        return self._stage("sample", self.kept.folder.name, every)

    @property
    def _weights(self) -> list[float]:
        return [source.weight for source in self.config.data.train]

    @property
    def tokenizer_file(self) -> Path:
        return self.tokenizer.folder / "tokenizer.model"

    @property
    def stages(self) -> list[Stage]:
        return [
            *(self.index, self.clean, self.held_out, self.kept, self.overlap),
            *(self.tokenizer, self.shards),
        ]

    def refuse_changed(self) -> None:
        """Raises UserError if a file is no longer the one whose hash is in the stages' keys."""
        for file in self.inputs:
            with suppress(FileNotFoundError):  # whoever needs it says so
                status = Path(file.path).stat()
                if (status.st_size, status.st_mtime_ns) != (file.bytes, file.modified_ns):
                    raise changed(Path(file.path))

    def status_of(self, path: Path) -> tuple[int, int]:
        """Returns size and time of change of an input, as it was hashed."""
        return next((f.bytes, f.modified_ns) for f in self.inputs if f.path == str(path))

    def _stage(self, name: str, *depends_on: object) -> Stage:
        return Stage(self.folder / f"{name}-{key_of(*depends_on)}")

    def _hashes(self, *splits: Split) -> list[str]:
        by_path = {file.path: file.sha256 for file in self.inputs}
        return [by_path[str(path)] for path in input_files(self.config.data, *splits)]


def make_plan(config: Config) -> Plan:
    folder = config.prepared_folder
    known = folder / PASSPORT_NAME, folder / INPUTS_NAME
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder}: is a file; set data.prepared to a folder")
    if folder.is_dir() and any(folder.iterdir()) and not any(path.exists() for path in known):
        raise UserError(
            f"{folder}: holds files that are not prepared data, and nothing was changed; "
            "set data.prepared to another folder"
        )
    plan = Plan(config, _input_files(config))
    _verify_hashes(plan)
    return plan


def _verify_hashes(plan: Plan) -> None:
    """Refuses a file whose hash is not the one in the recipe."""
    hashes = {file.path: file.sha256 for file in plan.inputs}
    data = plan.config.data
    for split in SPLITS:
        for number, source in enumerate(sources_of(data, split)):
            if not isinstance(source, TextSource):
                continue
            # Not strict: the recipe may give no hashes at all.
            for path, expected in zip(files_of(source, data), source.sha256, strict=False):
                found = hashes[str(path)]
                if found != expected:
                    raise UserError(
                        f"{path}: its sha256 is {found} and data.{split}.{number}.sha256 is "
                        f"{expected}; get the right file or correct the recipe"
                    )


def _input_files(config: Config) -> list[InputFile]:
    """Returns every file that is read, with its hash, computed once per size and change time.

    Missing files count as unchanged: prepared data is usable without the raw text.
    """
    path = config.prepared_folder / INPUTS_NAME
    before, files = _read_inputs(path), _inputs(config)
    known = {file.path: file for file in before} | _moved(before, files)
    tokenizer = str(config.tokenizer.model)
    now = [_input_file(file, known.get(str(file)), str(file) == tokenizer) for file in files]
    if now != before or not path.exists():
        write_json(path, {"files": [file.model_dump() for file in now]})
    return now


def _moved(before: Sequence[InputFile], files: Sequence[Path]) -> dict[str, InputFile]:
    """Returns what is known of files that are now in other folders: prepared data may be copied to
    a machine that has them elsewhere, or not at all."""
    if [Path(file.path).name for file in before] != [file.name for file in files]:
        return {}
    places = {file.path for file in before}
    return {
        str(now): then.model_copy(update={"path": str(now)})
        for then, now in zip(before, files, strict=True)
        if str(now) not in places
    }


def _read_inputs(path: Path) -> list[InputFile]:
    if not path.exists():
        return []
    try:
        return _InputsFile.model_validate(read_json(path)).files
    except ValidationError as error:
        raise CorruptFileError(
            f"{path}: {problems_of(error)}; remove this file to hash the inputs again"
        ) from error


def _inputs(config: Config) -> list[Path]:
    given = [Path(config.tokenizer.model)] if config.tokenizer.model else []
    return input_files(config.data, *SPLITS) + given


def _input_file(path: Path, before: InputFile | None, is_tokenizer: bool) -> InputFile:
    try:
        status = regular_file_status(path)
        if before and (before.bytes, before.modified_ns) == (status.st_size, status.st_mtime_ns):
            return before
        return InputFile(
            path=str(path),
            bytes=status.st_size,
            modified_ns=status.st_mtime_ns,
            sha256=_hash(path, status.st_size),
        )
    except FileNotFoundError:
        if before:
            return before
        if is_tokenizer:
            raise missing_model(path) from None
        raise UserError(
            f"{path}: no such file; put it there, or correct data.folder or the name in the recipe"
        ) from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); get it again") from error


def _hash(path: Path, size: int) -> str:
    """Returns the hash of the first `size` bytes, so that a growing file cannot take forever."""
    digest = hashlib.sha256()
    with path.open("rb") as file, Progress(f"hashing {path.name}", "bytes", size) as progress:
        left = size
        while left and (block := file.read(min(left, BLOCK_BYTES))):
            digest.update(block)
            left -= len(block)
            progress.advance(len(block))
        if left or file.read(1):
            raise changed(path)
    return digest.hexdigest()
