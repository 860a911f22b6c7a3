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
from dragoman.rundir import read_json, write_json, write_whole

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


def from_text(source: bytes, target: bytes) -> list[Pair]:
    """Returns the pairs of what `as_text` has made."""
    return list(map(Pair, *(side.decode().split("\n")[:-1] for side in (source, target))))


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
        self.finish_written(number, record, self.write(number, contents))

    def write(self, number: int, contents: Mapping[str, str | bytes]) -> dict[str, str]:
        """Writes a slice's files; returns their hashes, for its record."""
        hashes = {}
        for suffix, content in contents.items():
            encoded = content.encode() if isinstance(content, str) else content
            write_whole(self.file(number, suffix), encoded)
            hashes[suffix] = hashlib.sha256(encoded).hexdigest()
        return hashes

    def finish_written(
        self, number: int, record: Mapping[str, Any], hashes: Mapping[str, str]
    ) -> None:
        write_json(self.file(number, "json"), {**record, "sha256": hashes})

    def record(self, number: int) -> dict[str, Any]:
        return read_json(self.file(number, "json"))

    def pairs(self, number: int) -> list[Pair]:
        """Returns the pairs of a slice, of a stage that writes text."""
        return from_text(self.content(number, "source"), self.content(number, "target"))

    def keys(self, number: int) -> npt.NDArray[np.uint64]:
        return np.frombuffer(self.content(number, "keys"), dtype="<u8")

    def flags(self, number: int) -> npt.NDArray[np.bool_]:
        return np.frombuffer(self.content(number, "flags"), dtype=np.bool_)

    def numbers(self) -> list[int]:
        """Returns the records of the finished slices, in order."""
        return sorted(int(path.stem) for path in self.folder.glob("[0-9]*.json"))

    def content(self, number: int, suffix: str) -> bytes:
        """Returns a slice's file, or refuses it if it is not what was written."""
        path = self.file(number, suffix)
        try:
            content = path.read_bytes()
            found = hashlib.sha256(content).hexdigest()
        except FileNotFoundError:
            content, found = b"", "missing"
        hashes = self.record(number).get("sha256")
        if not isinstance(hashes, dict) or hashes.get(suffix) != found:
            raise CorruptFileError(
                f"{path}: does not match its record {number:05d}.json; remove the "
                f"folder {self.folder} and prepare again"
            )
        return content
