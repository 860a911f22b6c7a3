"""Replicates the records of a run as they grow: pieces of them leave one host, and another writes
the same files."""

import json
import logging
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from dragoman.errors import StorageError, storage_errors
from dragoman.rundir import RunDir, has_id, write_whole

logger = logging.getLogger(__name__)

PIECE_BYTES = 1 << 18

_GROWING = re.compile(r"events/attempt-\d+-rank-\d+\.jsonl")
_REPLACED = ("status.json", "manifest.json")
_TRANSLATIONS = re.compile(r"translations/(step-\d+|references)\.txt")


class RecordPiece(NamedTuple):
    name: str
    """Relative to the run directory."""
    begin: int | None
    """Where in the file the text begins; None: it is the whole file, written anew."""
    text: str


class RecordTail:
    """Yields what was added to the records of the run directory `root` since the last call.

    With `run_id`, nothing of a directory that is not this run's, or not yet.
    """

    def __init__(
        self, root: Path, known: Mapping[str, int], home_token: str, run_id: str = ""
    ) -> None:
        self._root, self._token, self._run_id = root, home_token, run_id
        self._sizes = dict(known)
        self._stamps: dict[str, tuple[int, int]] = {}

    def new_pieces(self) -> Iterator[RecordPiece]:
        if self._token and (self._root / self._token).exists():
            return  # this is the very directory that the records would be brought to
        if self._run_id and not has_id(RunDir(self._root), self._run_id):
            return
        for path in sorted((self._root / "events").glob("*.jsonl")):
            yield from self._added(path)
        for path in (self._root / "translations").glob("*.txt"):
            name = f"translations/{path.name}"
            if self._sizes.get(name) != path.stat().st_size:
                self._sizes[name] = path.stat().st_size
                yield RecordPiece(name, None, path.read_text(encoding="utf-8"))
        for name in _REPLACED:
            path = self._root / name
            if path.exists():
                stamp = (path.stat().st_mtime_ns, path.stat().st_size)
                if self._stamps.get(name) != stamp:
                    self._stamps[name] = stamp
                    yield RecordPiece(name, None, path.read_text(encoding="utf-8"))

    def _added(self, path: Path) -> Iterator[RecordPiece]:
        name = f"events/{path.name}"
        with path.open("rb") as file:
            while True:
                begin = self._sizes.get(name, 0)
                file.seek(begin)
                read = file.read(PIECE_BYTES)
                whole = read[: read.rfind(b"\n") + 1]  # a line is not cut while it is written
                if not whole:
                    return
                self._sizes[name] = begin + len(whole)
                yield RecordPiece(name, begin, whole.decode("utf-8", errors="replace"))


class RecordReceiver:
    """Writes pieces into the run directory at home. A disk that refuses them stops nothing: the
    file ends there, and the next start of the run brings the rest, beginning at its size."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._refused: set[str] = set()

    def add(self, piece: RecordPiece) -> None:
        try:
            write_piece(self._run, piece)
        except StorageError as error:
            if piece.name not in self._refused:
                self._refused.add(piece.name)
                logger.warning(
                    f"{error.path}: {error.reason} while bringing records home; the hosts train on "
                    "and keep them, and the same command brings them when there is room again"
                )


def record_sizes(run: RunDir) -> dict[str, int]:
    files = [*run.events.glob("*.jsonl"), *run.references.parent.glob("*.txt")]
    return {f"{path.parent.name}/{path.name}": path.stat().st_size for path in files}


def write_piece(run: RunDir, piece: RecordPiece) -> None:
    """Writes a piece to where it stands in the run directory of the sender."""
    path = run.root / piece.name
    if piece.name == run.manifest.name and piece.begin is None:
        write_whole(path, _with_attempts_of(path, piece.text))
    elif piece.begin is None and (piece.name in _REPLACED or _TRANSLATIONS.fullmatch(piece.name)):
        write_whole(path, piece.text)
    elif piece.begin is not None and _GROWING.fullmatch(piece.name):
        with storage_errors(path, "bringing records home"):
            path.parent.mkdir(parents=True, exist_ok=True)
            if piece.begin > (path.stat().st_size if path.exists() else 0):
                return  # what comes before it was refused; a hole would never be filled
            with path.open("r+b" if path.exists() else "wb", buffering=0) as file:
                file.seek(piece.begin)
                written, data = 0, piece.text.encode()
                while written < len(data):
                    written += file.write(data[written:])


def _with_attempts_of(path: Path, text: str) -> str:
    """Returns the manifest `text`, with the attempts from `path` that another host led."""
    content = json.loads(text)
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    attempts = {a["attempt"]: a for m in (before, content) for a in m.get("attempts", [])}
    content["attempts"] = [attempts[number] for number in sorted(attempts)]
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
