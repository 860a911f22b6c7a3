"""Ids <-> memory-mapped files, opened without copying and shared by all workers of a host.

A shard is two NumPy files. `*.tokens.npy` holds the ids of its sequences end to end;
`*.bounds.npy` holds where each begins: the source of pair i is tokens[bounds[2i]:bounds[2i+1]],
its target tokens[bounds[2i+1]:bounds[2i+2]].
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dragoman.errors import CorruptFileError, storage_errors
from dragoman.rundir import sha256_of

PAIRS_PER_SHARD = 500_000


class ShardFile(NamedTuple):
    """What the data passport keeps of each file, to recognize it by."""

    name: str
    bytes: int
    sha256: str


class PairIds(NamedTuple):
    source: Sequence[int] | npt.NDArray[np.integer]
    target: Sequence[int] | npt.NDArray[np.integer]


def write_shards(
    folder: Path,
    split: str,
    pairs: Iterable[PairIds],
    vocabulary: int,
    pairs_per_shard: int = PAIRS_PER_SHARD,
) -> list[ShardFile]:
    """Write pairs as shards `<split>-00000` and following; at most one shard is in memory."""
    dtype = np.uint16 if vocabulary <= 1 << 16 else np.uint32
    remaining = iter(pairs)
    files: list[ShardFile] = []
    while shard := list(islice(remaining, pairs_per_shard)):
        sequences = [np.asarray(side, dtype=dtype) for pair in shard for side in pair]
        bounds = np.zeros(len(sequences) + 1, dtype=np.int64)
        np.cumsum([len(sequence) for sequence in sequences], out=bounds[1:])
        stem = f"{split}-{len(files) // 2:05d}"
        for part, content in (("tokens", np.concatenate(sequences)), ("bounds", bounds)):
            path = folder / f"{stem}.{part}.npy"
            with storage_errors(path, "writing shards"):
                np.save(path, content, allow_pickle=False)
            files.append(ShardFile(path.name, path.stat().st_size, sha256_of(path)))
    return files


def verify_shards(folder: Path, files: Iterable[ShardFile]) -> None:
    """Read every byte once and compare with what the passport says."""
    for file in files:
        path = folder / file.name
        found = sha256_of(path) if path.exists() else "nothing"
        if found != file.sha256:
            raise CorruptFileError(
                f"{path}: sha256 {file.sha256[:12]} is expected, {found[:12]} was found; "
                f"remove the folder {folder} and prepare the data again"
            )


class Shards:
    """All pairs of a split as one numbered list; slices are views into the mapped files."""

    def __init__(self, folder: Path, files: Sequence[ShardFile]) -> None:
        opened = {file.name: _map(folder, file) for file in files}
        stems = sorted({name.split(".")[0] for name in opened})
        self._tokens = [opened[f"{stem}.tokens.npy"] for stem in stems]
        self._bounds = [opened[f"{stem}.bounds.npy"] for stem in stems]
        counts = [len(bounds) // 2 for bounds in self._bounds]
        self._first_pairs = np.cumsum([0, *counts])

    def __len__(self) -> int:
        return int(self._first_pairs[-1])

    def __getitem__(self, number: int) -> PairIds:
        shard = int(np.searchsorted(self._first_pairs, number, side="right")) - 1
        at = 2 * (number - int(self._first_pairs[shard]))
        begin, middle, end = self._bounds[shard][at : at + 3]
        tokens = self._tokens[shard]
        return PairIds(tokens[begin:middle], tokens[middle:end])

    def lengths(self) -> npt.NDArray[np.int32]:
        """[pairs, 2]: number of ids of source and target, end pieces included."""
        sides = [np.diff(bounds).astype(np.int32).reshape(-1, 2) for bounds in self._bounds]
        return np.concatenate(sides) if sides else np.empty((0, 2), dtype=np.int32)


def _map(folder: Path, file: ShardFile) -> npt.NDArray[np.integer]:
    path = folder / file.name
    try:
        size = path.stat().st_size
        if size != file.bytes:
            raise CorruptFileError(
                f"{path}: has {size} bytes instead of {file.bytes}; "
                f"remove the folder {folder} and prepare the data again"
            )
        mapped: npt.NDArray[np.integer] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise CorruptFileError(
            f"{path}: cannot be opened ({error}); "
            f"remove the folder {folder} and prepare the data again"
        ) from error
    return mapped
