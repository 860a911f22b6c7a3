"""A run's copy in an object store: what lies where, and how it gets there and back.

<mirror>/<name of the run>/
  run-id, config.toml, manifest.json, status.json, events/, logs/, translations/   its records
  attempt                             whose uploads count: the token of the newest attempt
  checkpoints/step-00012000/...       files first, manifest.json last: without it there is nothing
  checkpoints/best                    the name of the best one's folder
  checkpoints-of-rank-0004/...        where workers take steps of their own: what another host keeps

Without torch.
"""

import hashlib
import logging
import os
import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from dragoman.checkpoints.checkpoint import Owner
from dragoman.checkpoints.folders import put_in_place
from dragoman.checkpoints.names import (
    BEST,
    MANIFEST,
    STATE,
    UNFINISHED,
    folder_of,
    point_to,
    step_of,
)
from dragoman.checkpoints.schema import Manifest, check_file, read_manifest
from dragoman.errors import CorruptFileError, RemoteError, UserError, storage_errors
from dragoman.rundir import MOST_ID_BYTES, RunDir, write_whole
from dragoman.storage import Address, Pace, Store, parse_address
from dragoman.storage.failures import MISSING, TOO_LARGE

logger = logging.getLogger(__name__)

RUN_ID, CONFIG, ATTEMPT = "run-id", "config.toml", "attempt"
CHECKPOINTS = "checkpoints"
MOST_MANIFEST_BYTES = 1_000_000
_ID = re.compile(r"[0-9a-f]{8,64}")
_EVENTS = re.compile(r"events/attempt-(\d{1,9})-rank-\d{1,9}\.jsonl")
_RECORD = re.compile(
    rf"run-id|config\.toml|(manifest|status|check)\.json|evaluation-[\w.:-]+|{_EVENTS.pattern}"
    r"|events/[\w-][\w.:-]*\.jsonl|logs/[\w-][\w.:-]*\.log|translations/[\w-][\w.:-]*\.txt"
)
ARRIVING = ".arriving-from-mirror"
"""In the folder of a run whose first records are not yet all there."""


class Mirrored(NamedTuple):
    """A checkpoint in the mirror, as its manifest describes it."""

    step: int
    manifest: bytes
    bytes: int

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.manifest).hexdigest()

    @property
    def owner(self) -> Owner:
        return Manifest.model_validate_json(self.manifest).owner


def mirror_address(mirror: str, run: RunDir) -> Address:
    """Returns where this run's copy is: `checkpoints.mirror`, and the name of the run's folder."""
    address = parse_address(mirror)
    if address.scheme in ("http", "https"):
        raise UserError(
            f"checkpoints.mirror = {mirror!r}: cannot be written; name an s3://, gs://, az:// or "
            "file:// address"
        )
    address = address / run.root.resolve().name
    if address.scheme == "file" and address.folder.resolve() == run.root.resolve():
        raise UserError(
            f"checkpoints.mirror = {mirror!r}: is where the run itself is; name a folder on "
            "another disk or machine"
        )
    return address


def part_of_rank(rank: int) -> str:
    """Returns the folder for what the host of this rank keeps on its own."""
    return CHECKPOINTS if rank == 0 else f"{CHECKPOINTS}-of-rank-{rank:04d}"


def mirrored_id(store: Store) -> str:
    """Returns the id of the run that the mirror belongs to; empty: it belongs to none yet.

    Where it has been lost, the newest checkpoint knows it.
    """
    try:
        text = store.read(RUN_ID, MOST_ID_BYTES).decode("ascii", "replace").strip()
    except RemoteError as error:
        if error.kind != MISSING:
            raise
        newest = next(mirrored_checkpoints(store, CHECKPOINTS), None)
        text = newest.owner.get("id", "") if newest else ""
        if not text:
            return ""
    if not _ID.fullmatch(text):
        raise CorruptFileError(
            f"{store.address / RUN_ID}: should hold the id of a run, some hexadecimal digits; name "
            "another checkpoints.mirror, or remove what is there"
        )
    return text


def refuse_another_run(store: Store, found_id: str, own_id: str) -> None:
    """Raises UserError where the mirror belongs to another run; an empty id is nobody's."""
    if found_id and own_id and found_id != own_id:
        raise UserError(
            f"{store.address}: is the mirror of another run (id {found_id[:8]}..., not "
            f"{own_id[:8]}...); name another checkpoints.mirror or another folder with --run, or "
            "remove what is there"
        )


def upload_checkpoint(store: Store, part: str, folder: Path, pace: Pace) -> Mirrored:
    """Uploads a checkpoint, whole or not there; returns what has been uploaded.

    Raises FileNotFoundError where it is no longer here, and CorruptFileError where it is damaged.
    All files are opened first, so that it may be removed or replaced meanwhile.
    """
    name = f"{part}/{folder.name}"
    with ExitStack() as at_end:
        manifest = (folder / MANIFEST).read_bytes()
        files = {}
        for file, saved in read_manifest(folder).files.items():
            opened = files[file] = at_end.enter_context((folder / file).open("rb"))
            if os.fstat(opened.fileno()).st_size != saved.bytes:
                raise CorruptFileError(f"{folder / file}: has not the size with which it was saved")
        if (folder / MANIFEST).read_bytes() != manifest:
            raise FileNotFoundError(folder)  # replaced while its files were opened
        # A checkpoint of this step may be there from before a rollback: it ends here.
        store.delete([f"{name}/{MANIFEST}"])
        size = sum(store.upload(f"{name}/{file}", opened, pace) for file, opened in files.items())
        size += store.upload(f"{name}/{MANIFEST}", manifest, pace)
    return Mirrored(step_of(folder.name) or 0, manifest, size)


def mirrored_checkpoints(store: Store, part: str) -> Iterator[Mirrored]:
    """Yields the checkpoints of a part that have all their files, newest first.

    Their content is verified when it has come back.
    """
    folders = _folders(store, part)
    for step in sorted(folders, reverse=True):
        sizes = folders[step]
        if MANIFEST not in sizes:
            continue
        try:
            content = store.read(f"{part}/{folder_of(step)}/{MANIFEST}", MOST_MANIFEST_BYTES)
            manifest = Manifest.model_validate_json(content)
        except (ValueError, RemoteError) as error:
            if isinstance(error, RemoteError) and error.kind not in (MISSING, TOO_LARGE):
                raise
            logger.warning(f"{store.address}: the manifest of step {step:,} is damaged; skipped")
            continue
        if any(sizes.get(name) != file.bytes for name, file in manifest.files.items()):
            logger.warning(f"{store.address}: step {step:,} lacks a file or a part of it; skipped")
            continue
        total = len(content) + sum(file.bytes for file in manifest.files.values())
        yield Mirrored(step, content, total)


def fetch_checkpoint(store: Store, part: str, found: Mirrored, root: Path) -> Path:
    """Downloads a checkpoint into a folder of checkpoints, verified, whole or not at all.

    Raises CorruptFileError where its content is not what was saved.
    """
    name = folder_of(found.step)
    folder, beside = root / name, root / f"{UNFINISHED}{name}-mirror"
    with storage_errors(folder, "fetching a checkpoint"):
        root.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir()
        try:
            write_whole(beside / MANIFEST, found.manifest)
            for file, saved in read_manifest(beside).files.items():
                store.download(f"{part}/{name}/{file}", beside / file)
                check_file(beside / file, saved)
            put_in_place(beside, folder)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    return folder


def read_mirrored_state(store: Store, part: str, step: int) -> bytes:
    """Returns state.json of a checkpoint in the mirror."""
    return store.read(f"{part}/{folder_of(step)}/{STATE}", MOST_MANIFEST_BYTES)


def read_best(store: Store) -> int | None:
    """Returns the step of the best checkpoint; None: there is none."""
    try:
        return step_of(
            store.read(f"{CHECKPOINTS}/{BEST}", MOST_ID_BYTES).decode("ascii", "replace")
        )
    except RemoteError as error:
        if error.kind in (MISSING, TOO_LARGE):
            return None
        raise


def write_best(store: Store, step: int) -> None:
    store.upload(f"{CHECKPOINTS}/{BEST}", folder_of(step).encode())


def prune_mirror(store: Store, part: str, kept_here: Collection[int], keep_last: int) -> list[int]:
    """Removes what is no longer kept here; returns the steps that were removed.

    The newest `keep_last` stay even so: a machine that has come anew has only fetched one of them.
    Steps after the newest one here go: the run has rolled back past them. Where nothing is left
    here, a disk is gone or somebody has tidied up, and all stays there.
    """
    if not kept_here:
        return []
    folders = _folders(store, part)
    newest_here = max(kept_here)
    earlier = sorted(step for step in folders if step <= newest_here and MANIFEST in folders[step])
    keep = {*kept_here, *earlier[-keep_last:]}
    removed = sorted(step for step in folders if step not in keep)
    for step in removed:
        names = sorted(folders[step], key=lambda name: name != MANIFEST)
        store.delete([f"{part}/{folder_of(step)}/{name}" for name in names])
    return removed


def records_of(run: RunDir) -> list[Path]:
    """Returns the files of a run that tell what it is and how it went, with its id at the end."""
    one_by_one = (run.config, run.manifest, run.status, run.check)
    return [
        *(path for path in one_by_one if path.is_file()),
        *sorted(run.events.glob("*.jsonl")),
        *sorted(run.logs.glob("*.log")),
        *sorted(run.references.parent.glob("*.txt")),
        *sorted(run.root.glob("evaluation-*")),
        *([run.id] if run.id.is_file() else []),
    ]


def fetch_records(store: Store, root: Path, has_here: Collection[str] = ()) -> list[str]:
    """Downloads the records of a run into a folder, its id last; returns their names.

    Those in `has_here` are left out, and so are those that go meanwhile.
    """
    found = []
    names = {entry.name for entry in store.list() if _RECORD.fullmatch(entry.name)} - {*has_here}
    for name in sorted(names, key=lambda name: (name == RUN_ID, name)):
        try:
            store.download(name, root / name)
        except RemoteError as error:
            if error.kind != MISSING:
                raise
        else:
            found.append(name)
    return found


def fetch_first_records(store: Store, root: Path) -> None:
    """Downloads the records of a run into a folder without one.

    As long as a mark is in it, they are not all there, and are fetched again by the next start.
    """
    with storage_errors(root, "fetching the records of a run"):
        root.mkdir(parents=True, exist_ok=True)
        (root / ARRIVING).touch()
        for leftover in (*root.glob(".*.part"), *root.glob("*/.*.part")):
            leftover.unlink(missing_ok=True)
    fetch_records(store, root)
    (root / ARRIVING).unlink(missing_ok=True)


def fetch_later_records(store: Store, run: RunDir) -> bool:
    """Downloads the records of attempts that were made elsewhere since the last one here.

    What was recorded here of earlier ones stays. Returns whether there were any.
    """
    attempts = {
        name: int(found[1])
        for name in (entry.name for entry in store.list("events"))
        if (found := _EVENTS.fullmatch(name))
    }
    own = (_EVENTS.fullmatch(f"events/{path.name}") for path in run.events.glob("*.jsonl"))
    newest_here = max((int(found[1]) for found in own if found), default=0)
    if max(attempts.values(), default=0) <= newest_here:
        return False
    has_here = {path.relative_to(run.root).as_posix() for path in run.root.glob("*/*")}
    fetch_records(store, run.root, {RUN_ID, *has_here})
    return True


def fetch_run(address: Address, root: Path) -> None:
    """Downloads the records of the run at this address; raises UserError if there is none.

    Of its checkpoints come the names and sizes of files, without their content.
    """
    store = Store(address)
    if store.size(CONFIG) is None:
        store.list(CONFIG)  # raises where there is no bucket, or nothing that can be listed
        raise UserError(
            f"{address}: holds no run; the mirror of a run is at checkpoints.mirror and the name "
            "of its folder, such as s3://bucket/runs/demo"
        )
    fetch_records(store, root)
    checkpoints = RunDir(root).checkpoints
    for found in mirrored_checkpoints(store, CHECKPOINTS):
        folder = checkpoints / folder_of(found.step)
        folder.mkdir(parents=True)
        (folder / MANIFEST).write_bytes(found.manifest)
        for name, saved in Manifest.model_validate_json(found.manifest).files.items():
            with (folder / name).open("wb") as file:
                file.truncate(saved.bytes)  # a hole, which takes no room
    best = read_best(store)
    if best is not None and (checkpoints / folder_of(best)).is_dir():
        point_to(checkpoints, BEST, folder_of(best))


def write_attempt(store: Store, token: str) -> None:
    """Notes that from now on the uploads of this attempt count, and no earlier one's."""
    store.upload(ATTEMPT, f"{token}\n".encode())


def read_attempt(store: Store) -> str:
    """Returns the token of the attempt whose uploads count; empty: none has said so."""
    try:
        return store.read(ATTEMPT, MOST_ID_BYTES).decode("ascii", "replace").strip()
    except RemoteError as error:
        if error.kind == MISSING:
            return ""
        raise


def is_foreign(found: Mirrored, owner: Owner) -> bool:
    """Returns whether its manifest names another run as its owner."""
    theirs = found.owner
    return any(theirs[what] != owner[what] for what in theirs.keys() & owner.keys())


def _folders(store: Store, part: str) -> dict[int, dict[str, int]]:
    """Returns by step the files of each checkpoint and their sizes, whole or not."""
    found: dict[int, dict[str, int]] = {}
    for entry in store.list(part):
        folder, _, name = entry.name.removeprefix(f"{part}/").partition("/")
        step = step_of(folder)
        if step is not None and name:
            found.setdefault(step, {})[name] = entry.bytes
    return found
