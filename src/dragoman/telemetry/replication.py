"""Replicates the records of a run as they grow: pieces of them leave one host, and another writes
the same files."""

import base64
import json
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.errors import StorageError, storage_errors
from dragoman.rundir import RunDir, has_id, write_whole
from dragoman.telemetry.record.log_file import LOG_NAME, remove_excess

logger = logging.getLogger(__name__)

PIECE_BYTES = 1 << 18

_GROWING = re.compile(
    r"events/attempt-\d+-rank-\d+\.jsonl"
    rf"|logs/{LOG_NAME.pattern}"
    r"|tensorboard/(\w[\w.:-]*/)?events\.out\.tfevents\.[\w.:-]+"
)
_REPLACED = ("status.json", "manifest.json")
_TRANSLATIONS = re.compile(r"translations/(step-\d+|references)\.txt")


class RecordPiece(NamedTuple):
    name: str
    """Relative to the run directory."""
    begin: int | None
    """Where in the file the content begins; None: it is the whole file, written anew."""
    content: bytes

    def to_message(self) -> dict[str, Any]:
        """Returns the piece as JSON can hold it: files of TensorBoard are not text."""
        message = {"record": self.name, "begin": self.begin}
        try:
            return {**message, "text": self.content.decode()}
        except UnicodeDecodeError:
            return {**message, "base64": base64.b64encode(self.content).decode("ascii")}

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> "RecordPiece":
        text, encoded = message.get("text"), message.get("base64", "")
        content = base64.b64decode(encoded) if text is None else text.encode()
        return cls(message["record"], message["begin"], content)


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
        for path in growing_records(RunDir(self._root)):
            yield from self._added(path)
        for path in (self._root / "translations").glob("*.txt"):
            name = f"translations/{path.name}"
            if self._sizes.get(name) != path.stat().st_size:
                self._sizes[name] = path.stat().st_size
                yield RecordPiece(name, None, path.read_bytes())
        for name in _REPLACED:
            path = self._root / name
            if path.exists():
                stamp = (path.stat().st_mtime_ns, path.stat().st_size)
                if self._stamps.get(name) != stamp:
                    self._stamps[name] = stamp
                    yield RecordPiece(name, None, path.read_bytes())

    def _added(self, path: Path) -> Iterator[RecordPiece]:
        name = path.relative_to(self._root).as_posix()
        is_text = not name.startswith("tensorboard/")
        with suppress(FileNotFoundError), path.open("rb") as file:  # an old log may be removed
            while True:
                begin = self._sizes.get(name, 0)
                file.seek(begin)
                read = file.read(PIECE_BYTES)
                # A line is not cut while it is written.
                whole = read[: read.rfind(b"\n") + 1] if is_text else read
                if not whole:
                    return
                self._sizes[name] = begin + len(whole)
                yield RecordPiece(name, begin, whole)


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
    files = [*growing_records(run), *run.references.parent.glob("*.txt")]
    return {path.relative_to(run.root).as_posix(): path.stat().st_size for path in files}


def growing_records(run: RunDir) -> list[Path]:
    """Returns the files of a run that nothing is ever done to but to add to them."""
    return [
        *sorted(run.events.glob("*.jsonl")),
        *sorted(run.logs.glob("*.log")),
        *sorted(run.tensorboard.rglob("events.out.tfevents.*")),
    ]


def write_piece(run: RunDir, piece: RecordPiece) -> None:
    """Writes a piece to where it stands in the run directory of the sender."""
    path = run.root / piece.name
    if piece.name == run.manifest.name and piece.begin is None:
        write_whole(path, _with_attempts_of(path, piece.content))
    elif piece.begin is None and (piece.name in _REPLACED or _TRANSLATIONS.fullmatch(piece.name)):
        write_whole(path, piece.content)
    elif piece.begin is not None and _GROWING.fullmatch(piece.name):
        with storage_errors(path, "bringing records home"):
            path.parent.mkdir(parents=True, exist_ok=True)
            is_new = not path.exists()
            if piece.begin > (0 if is_new else path.stat().st_size):
                return  # what comes before it was refused; a hole would never be filled
            with path.open("wb" if is_new else "r+b", buffering=0) as file:
                file.seek(piece.begin)
                written = 0
                while written < len(piece.content):
                    written += file.write(piece.content[written:])
        if is_new and (log := LOG_NAME.fullmatch(path.name)):
            remove_excess(run.logs, log["writer"])


def _with_attempts_of(path: Path, received: bytes) -> str:
    """Returns the manifest `received`, with the attempts from `path` that another host led."""
    content = json.loads(received)
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    attempts = {a["attempt"]: a for m in (before, content) for a in m.get("attempts", [])}
    content["attempts"] = [attempts[number] for number in sorted(attempts)]
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
