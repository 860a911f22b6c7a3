"""Ids <-> memory-mapped files, opened without copying and shared by all workers of a host.

A shard is two NumPy files. `*.tokens.npy` holds the ids of its sequences end to end;
`*.bounds.npy` holds where each begins: the source of pair i is tokens[bounds[2i]:bounds[2i+1]],
its target tokens[bounds[2i+1]:bounds[2i+2]].
"""

import io
from collections.abc import Iterable, Sequence
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
    files = []
    for part, content in (("tokens", tokens), ("bounds", bounds)):
        path = folder / f"{stem}.{part}.npy"
        written = io.BytesIO()
        np.save(written, content, allow_pickle=False)
        write_whole(path, written.getvalue())
        name = f"{folder.name}/{path.name}"
        files.append(ShardFile(name, path.stat().st_size, sha256_of(path)))
    return files


def verify_shards(folder: Path, files: Iterable[ShardFile]) -> None:
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


class Shards:
    """All pairs of a split as one sequence; items are views into the mapped files."""

    def __init__(self, folder: Path, files: Sequence[ShardFile]) -> None:
        opened = {file.name: _map(folder, file) for file in files}
        stems = sorted({name.split(".")[0] for name in opened})
        for name in (f"{stem}.{part}.npy" for stem in stems for part in ("tokens", "bounds")):
            if name not in opened:
                raise _unusable(folder, folder / name, "is not listed in the data passport")
        self._folder, self._stems = folder, stems
        self._tokens = [opened[f"{stem}.tokens.npy"] for stem in stems]
        self._bounds = [opened[f"{stem}.bounds.npy"] for stem in stems]
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
        return PairIds(tokens[begin:middle], tokens[middle:end])

    def lengths(self) -> npt.NDArray[np.int32]:
        """Returns the number of ids of source and target, end pieces included, as [pairs, 2]."""
        sides = [np.diff(bounds).astype(np.int32).reshape(-1, 2) for bounds in self._bounds]
        return np.concatenate(sides) if sides else np.empty((0, 2), dtype=np.int32)

    def check_ids(self, vocabulary: int) -> None:
        """Raises CorruptFileError unless every id is a piece and every bound is within the ids.

        Reads every byte: call it once per host, along with `verify_shards`.
        """
        for stem, tokens, bounds in zip(self._stems, self._tokens, self._bounds, strict=True):
            is_in_order = len(bounds) % 2 == 1 and bool((np.diff(bounds) > 0).all())
            if not is_in_order or bounds[0] != 0 or bounds[-1] != len(tokens):
                path = self._folder / f"{stem}.bounds.npy"
                raise _unusable(self._folder, path, "its bounds are not those of its ids")
            if len(tokens) and not 0 <= int(tokens.min()) <= int(tokens.max()) < vocabulary:
                path = self._folder / f"{stem}.tokens.npy"
                raise _unusable(
                    self._folder, path, f"holds ids that are not 0 to {vocabulary - 1:,}"
                )


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
