"""Ids <-> memory-mapped files, opened without copying and shared by all workers of a host.

A shard is two NumPy files. `*.tokens.npy` holds the ids of its sequences end to end;
`*.bounds.npy` holds where each begins: the source of pair i is tokens[bounds[2i]:bounds[2i+1]],
its target tokens[bounds[2i+1]:bounds[2i+2]].
"""

import hashlib
import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field

from dragoman.config import LARGEST_INTEGER, between
from dragoman.errors import CorruptFileError
from dragoman.rundir import sha256_of, write_whole

# Below the prepared folder, and never out of it: what is listed is copied to other hosts.
FileName = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$")
]


class ShardFile(NamedTuple):
    """What the data passport records of each file, to recognize it."""

    name: FileName
    bytes: Annotated[int, between(0, LARGEST_INTEGER)]
    sha256: str


class PairIds(NamedTuple):
    source: Sequence[int] | npt.NDArray[np.integer]
    target: Sequence[int] | npt.NDArray[np.integer]


def write_shard(
    folder: Path, stem: str, tokens: npt.NDArray[np.integer], bounds: npt.NDArray[np.int64]
) -> list[ShardFile]:
    """Writes one shard; names are relative to the folder above, where the passport is."""
    contents = shard_contents(stem, tokens, bounds)
    for name, content in contents.items():
        write_whole(folder / name, content)
    return files_of_shard(folder.name, contents)


def shard_contents(
    stem: str, tokens: npt.NDArray[np.integer], bounds: npt.NDArray[np.int64]
) -> dict[str, bytes]:
    """Returns the files of one shard, by their names."""
    contents = {}
    for part, content in (("tokens", tokens), ("bounds", bounds)):
        written = io.BytesIO()
        np.save(written, content, allow_pickle=False)
        contents[f"{stem}.{part}.npy"] = written.getvalue()
    return contents


def files_of_shard(folder: str, contents: Mapping[str, bytes]) -> list[ShardFile]:
    """Returns what the passport records of files in the folder of this name."""
    return [
        ShardFile(f"{folder}/{name}", len(content), hashlib.sha256(content).hexdigest())
        for name, content in contents.items()
    ]


def verify_files(folder: Path, files: Iterable[ShardFile]) -> None:
    """Reads every byte once and compares it with the passport's hashes."""
    for file in files:
        path = folder / file.name
        try:
            found = sha256_of(path) if path.exists() else "nothing"
        except OSError as error:
            raise _unusable(folder, path, f"cannot be read ({error.strerror})") from error
        if found != file.sha256:
            raise CorruptFileError(
                f"{path}: sha256 {file.sha256[:12]} expected, but {found[:12]} was found; "
                f"remove the folder {folder} and prepare the data again"
            )


def is_tokens(file: ShardFile) -> bool:
    return file.name.endswith(".tokens.npy")


class Shards:
    """All pairs of a split as one sequence; items are views into the mapped files.

    Files of tokens may be missing: lengths are known without them, and pairs once `hold` has
    found them.
    """

    def __init__(self, folder: Path, files: Sequence[ShardFile]) -> None:
        listed = {file.name: file for file in files}
        stems = sorted({name.split(".")[0] for name in listed})
        for name in (f"{stem}.{part}.npy" for stem in stems for part in ("tokens", "bounds")):
            if name not in listed:
                raise _unusable(folder, folder / name, "is not listed in the data passport")
        self._folder, self._stems = folder, stems
        self.token_files = [listed[f"{stem}.tokens.npy"] for stem in stems]
        """By shard."""
        self._tokens = [
            _map(folder, file) if (folder / file.name).exists() else None
            for file in self.token_files
        ]
        self._bounds = [_map(folder, listed[f"{stem}.bounds.npy"]) for stem in stems]
        counts = [len(bounds) // 2 for bounds in self._bounds]
        self._first_pairs = np.cumsum([0, *counts])

    def __len__(self) -> int:
        return int(self._first_pairs[-1])

    @property
    def pairs_by_shard(self) -> list[int]:
        sizes: list[int] = np.diff(self._first_pairs).tolist()
        return sizes

    def __getitem__(self, number: int) -> PairIds:
        shard = int(np.searchsorted(self._first_pairs, number, side="right")) - 1
        at = 2 * (number - int(self._first_pairs[shard]))
        begin, middle, end = self._bounds[shard][at : at + 3]
        tokens = self._tokens[shard]
        if tokens is None:
            tokens = self._tokens[shard] = _map(self._folder, self.token_files[shard])
        return PairIds(tokens[begin:middle], tokens[middle:end])

    def hold(self, shards: Collection[int]) -> bool:
        """Maps these shards and lets go of all others, whose disk space is free once they are
        removed; returns whether all of these are there."""
        for number, file in enumerate(self.token_files):
            if number not in shards:
                self._tokens[number] = None
            elif self._tokens[number] is None:
                try:
                    self._tokens[number] = _map(self._folder, file)
                except CorruptFileError as error:
                    if isinstance(error.__cause__, FileNotFoundError):
                        return False
                    raise
        return True

    def lengths(self) -> npt.NDArray[np.int32]:
        """Returns the number of ids of source and target, end pieces included, as [pairs, 2]."""
        sides = [np.diff(bounds).astype(np.int32).reshape(-1, 2) for bounds in self._bounds]
        return np.concatenate(sides) if sides else np.empty((0, 2), dtype=np.int32)

    def check_ids(self, vocabulary: int, lacking: Collection[ShardFile] = ()) -> None:
        """Raises CorruptFileError unless every id is a piece and every bound is within the ids.

        Reads every byte: call it once per host, along with `verify_files`.
        """
        for number, (stem, bounds) in enumerate(zip(self._stems, self._bounds, strict=True)):
            if self.token_files[number] in lacking:
                continue
            is_in_order = len(bounds) % 2 == 1 and bool((np.diff(bounds) > 0).all())
            tokens = self._tokens[number]
            if tokens is None:
                tokens = _map(self._folder, self.token_files[number])
            if not is_in_order or bounds[0] != 0 or bounds[-1] != len(tokens):
                path = self._folder / f"{stem}.bounds.npy"
                raise _unusable(self._folder, path, "its bounds are not those of its ids")
            if not are_pieces(tokens, vocabulary):
                path = self._folder / f"{stem}.tokens.npy"
                raise _unusable(
                    self._folder, path, f"holds ids that are not 0 to {vocabulary - 1:,}"
                )


def are_pieces(ids: npt.NDArray[np.integer], vocabulary: int) -> bool:
    return not len(ids) or 0 <= int(ids.min()) <= int(ids.max()) < vocabulary


def _map(folder: Path, file: ShardFile) -> npt.NDArray[np.integer]:
    path = folder / file.name
    try:
        size = path.stat().st_size
        if size != file.bytes:
            raise _unusable(folder, path, f"has {size} bytes instead of {file.bytes}")
        mapped: npt.NDArray[np.integer] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise _unusable(folder, path, f"cannot be opened ({error})") from error
    if not isinstance(mapped, np.ndarray) or mapped.ndim != 1 or mapped.dtype.kind not in "iu":
        raise _unusable(folder, path, "is not a list of integers")
    return mapped


def _unusable(folder: Path, path: Path, why: str) -> CorruptFileError:
    return CorruptFileError(f"{path}: {why}; remove the folder {folder} and prepare the data again")
