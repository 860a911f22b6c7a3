"""The run directory: names of its files, and atomic writes."""

import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dragoman.errors import CorruptFileError, storage_errors

MOST_JSON_BYTES = 256_000_000
"""Most bytes of a file that is read as a whole: far more than the largest data passport."""
MOST_ID_BYTES = 1000

# Names of files that are being written, until they are renamed. The second kind of ending is what
# Python's tempfile gave them before.
_UNFINISHED = re.compile(
    r"\.(run-id|config\.toml|report\.(html|md)|[\w.-]+\.(json|txt))-([0-9a-f]{16}|[a-z0-9_]{8})"
)

# Directly in a run directory.
_OWN_FILE = re.compile(
    r"config\.toml|run-id|(manifest|status|mlflow|wandb|trace|check)\.json|report\.(html|md)|evaluation-.+|\.lock"
)


@dataclass(frozen=True)
class RunDir:
    """The paths of a run's files: the contract between training and all that reads them."""

    root: Path

    @property
    def config(self) -> Path:
        return self.root / "config.toml"

    @property
    def id(self) -> Path:
        """Id that distinguishes this run from all others, whatever their folders are called."""
        return self.root / "run-id"

    @property
    def manifest(self) -> Path:
        return self.root / "manifest.json"

    @property
    def status(self) -> Path:
        return self.root / "status.json"

    @property
    def check(self) -> Path:
        """What was measured of the hosts before the run started on them."""
        return self.root / "check.json"

    @property
    def events(self) -> Path:
        return self.root / "events"

    @property
    def tensorboard(self) -> Path:
        return self.root / "tensorboard"

    @property
    def logs(self) -> Path:
        """What every process of the run has logged, in files of its own."""
        return self.root / "logs"

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    @property
    def converted(self) -> Path:
        """Checkpoints converted for CTranslate2; they are made again where they are missing."""
        return self.root / "ctranslate2"

    @property
    def references(self) -> Path:
        """References of the sentences that evaluations during training translate, one per line."""
        return self.root / "translations" / "references.txt"

    def translations(self, step: int) -> Path:
        """Translations of the evaluation after this step, line by line like `references`."""
        return self.root / "translations" / f"step-{step:08d}.txt"

    def report(self, suffix: str) -> Path:
        return self.root / f"report.{suffix}"

    def evaluation(self, split: str) -> Path:
        return self.root / f"evaluation-{split}.json"

    def evaluation_text(self, split: str, what: Literal["translations", "references"]) -> Path:
        """Texts that belong to `evaluation`, one sentence per line."""
        return self.root / f"evaluation-{split}.{what}.txt"

    def events_of(self, attempt: int, rank: int) -> Path:
        return self.events / f"attempt-{attempt:03d}-rank-{rank:04d}.jsonl"


def has_id(run: RunDir, run_id: str) -> bool:
    try:
        return read_bounded(run.id, MOST_ID_BYTES).decode("ascii").strip() == run_id
    except (OSError, UnicodeDecodeError):
        return False


def is_own_file(run: RunDir, path: Path) -> bool:
    """Returns whether `path`, or what it links to, is one of the run's own files."""
    root = run.root.resolve()
    folders = [
        folder.resolve()
        for folder in (
            *(run.checkpoints, run.events, run.tensorboard, run.logs),
            *(run.converted, run.references.parent),
        )
    ]
    return any(
        any(place.is_relative_to(folder) for folder in folders)
        or (place.parent == root and _OWN_FILE.fullmatch(place.name) is not None)
        for place in (path.parent.resolve() / path.name, path.resolve())
    )


def write_whole(path: Path, content: str | bytes) -> None:
    """Replaces `path` atomically: a reader sees the old content or the new, never a part."""
    data = content.encode() if isinstance(content, str) else content
    with storage_errors(path, f"writing {path.name}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, beside = _open_beside(path)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                beside.replace(path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise


def ensure_writable(path: Path) -> None:
    """Raises what `write_whole` would, before the work whose result is to be written."""
    with storage_errors(path, f"writing {path.name}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, beside = _open_beside(path)
        os.close(descriptor)
        beside.unlink(missing_ok=True)


def remove_unfinished(folder: Path) -> None:
    """Removes partial files that killed processes have left."""
    for path in folder.glob(".*"):
        if _UNFINISHED.fullmatch(path.name):
            with suppress(OSError), path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while someone writes it
                path.unlink()


def _open_beside(path: Path) -> tuple[int, Path]:
    """Creates a temporary file next to `path`, locked as long as it is open."""
    while True:
        beside = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
        # Opened like this, the kernel applies the umask, which cannot be read without changing it.
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor, beside
        os.close(descriptor)  # removed as a leftover before it was locked


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_whole(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def write_sentences(path: Path, sentences: Iterable[str]) -> None:
    """Writes one per line; line feeds inside become spaces, which makes no difference to scores."""
    write_whole(path, "".join(sentence.replace("\n", " ") + "\n" for sentence in sentences))


def read_sentences(path: Path) -> list[str] | None:
    """Returns the lines; None if there is no such file, or it is not UTF-8 text."""
    try:  # as bytes: text mode would end lines at carriage returns inside them too
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return text.removesuffix("\n").split("\n") if text else []


def read_bounded(path: Path, most_bytes: int) -> bytes:
    """Returns the content of a regular file.

    Raises OSError for a pipe or a device, which may have no end, and for a file that is larger
    than `most_bytes`."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    with path.open("rb") as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"it has more than {most_bytes:,} bytes", str(path))
    return content


def read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(read_bounded(path, MOST_JSON_BYTES))
    except OSError as error:
        raise CorruptFileError(f"{path}: cannot be read ({error.strerror})") from error
    except RecursionError:
        raise CorruptFileError(f"{path}: cannot be read as JSON (nested too deeply)") from None
    except ValueError as error:
        raise CorruptFileError(f"{path}: cannot be read as JSON ({error})") from error
    if not isinstance(content, dict):
        raise CorruptFileError(f"{path}: should hold one JSON object")
    return content


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync_folder(path: Path) -> None:
    """Makes renames inside `path` survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
