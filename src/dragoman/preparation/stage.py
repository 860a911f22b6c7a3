"""A stage's folder: numbered results, each finished once its record is there.

The record has the hashes of the files beside it, and what is read back is compared with them: a
damaged slice would otherwise become part of the training data.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dragoman.corpus.pair import Pair
from dragoman.errors import CorruptFileError
from dragoman.rundir import read_json, sha256_of, write_json, write_whole

KEY_LENGTH = 12


def key_of(*what: object) -> str:
    """Returns a short hash of JSON values: everything that a stage's result depends on."""
    content = json.dumps(what, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(content.encode()).hexdigest()[:KEY_LENGTH]


def as_text(pairs: Sequence[Pair]) -> dict[str, str]:
    """Returns both sides as the contents of files, one line per pair."""
    return {
        "source": "".join(f"{pair.source}\n" for pair in pairs),
        "target": "".join(f"{pair.target}\n" for pair in pairs),
    }


@dataclass(frozen=True)
class Stage:
    folder: Path

    def file(self, number: int, suffix: str) -> Path:
        return self.folder / f"{number:05d}.{suffix}"

    def is_done(self, number: int) -> bool:
        return self.file(number, "json").exists()

    def finish(
        self, number: int, record: Mapping[str, Any], contents: Mapping[str, str | bytes]
    ) -> None:
        """Writes a slice's files atomically, and its record last, which marks it as finished."""
        hashes = {}
        for suffix, content in contents.items():
            encoded = content.encode() if isinstance(content, str) else content
            write_whole(self.file(number, suffix), encoded)
            hashes[suffix] = hashlib.sha256(encoded).hexdigest()
        write_json(self.file(number, "json"), {**record, "sha256": hashes})

    def record(self, number: int) -> dict[str, Any]:
        return read_json(self.file(number, "json"))

    def pairs(self, number: int) -> list[Pair]:
        """Yields the pairs of a slice, of a stage that writes text."""
        sides = (self._whole(number, side).read_bytes().decode() for side in ("source", "target"))
        lines = (side.split("\n")[:-1] for side in sides)
        return list(map(Pair, *lines))

    def keys(self, number: int) -> npt.NDArray[np.uint64]:
        """Returns the array memory-mapped: of billions of pairs only a range is read at once."""
        path = self._whole(number, "keys")
        if not path.stat().st_size:
            return np.empty(0, dtype=np.uint64)
        return np.memmap(path, dtype="<u8", mode="r")

    def flags(self, number: int) -> npt.NDArray[np.bool_]:
        return np.fromfile(self._whole(number, "flags"), dtype=np.bool_)

    def weights(self, number: int) -> npt.NDArray[np.float64]:
        return np.fromfile(self._whole(number, "weights"), dtype="<f8")

    def numbers(self) -> list[int]:
        """Returns the records of the finished slices, in order."""
        return sorted(int(path.stem) for path in self.folder.glob("[0-9]*.json"))

    def _whole(self, number: int, suffix: str) -> Path:
        """Returns a slice's file, or refuses it if it is not what was written."""
        path = self.file(number, suffix)
        try:
            found = sha256_of(path)
        except FileNotFoundError:
            found = "missing"
        hashes = self.record(number).get("sha256")
        if not isinstance(hashes, dict) or hashes.get(suffix) != found:
            raise CorruptFileError(
                f"{path}: does not match its record {number:05d}.json; remove the "
                f"folder {self.folder} and prepare again"
            )
        return path
