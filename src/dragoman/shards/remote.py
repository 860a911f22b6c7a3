"""Prepared data at an address: a folder is published there, and comes to hosts that lack it.

Names are the same there as in the folder, and the passport is written last: whoever finds it finds
all that it lists. What arrives is compared with the passport and gets its name only then.
"""

import fcntl
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from dragoman.config import problems_of
from dragoman.errors import CorruptFileError, UserError, storage_errors
from dragoman.rundir import sha256_of, write_whole
from dragoman.shards.files import ShardFile, are_pieces, is_tokens
from dragoman.shards.passport import FETCHED, PASSPORT_NAME, Passport, PreparedData
from dragoman.storage import Store

logger = logging.getLogger(__name__)

LOCK = ".fetching"
ARRIVING = ".arriving"
"""Ends the hidden name of a file until it is verified."""
TRIES = 2
"""Of a file that arrives damaged."""

Advance = Callable[[int], None]


def publish(prepared: PreparedData, store: Store, advance: Advance = lambda _: None) -> None:
    """Copies prepared data to an address, the passport last."""
    prepared.verify()
    for name in prepared.files():
        with (prepared.folder / name).open("rb") as file:
            advance(store.upload(name, file))


def fetch_beginning(store: Store, folder: Path) -> PreparedData:
    """Fetches all but the training tokens: with these a run can be planned.

    What is there already is verified; what is damaged, tokens too, is removed and fetched again.
    The address is asked for nothing where nothing is missing. One process a host may do this, under
    `fetching`.
    """
    here = PreparedData.open(folder) if (folder / PASSPORT_NAME).exists() else None
    is_fetched = (folder / FETCHED).exists()  # also by somebody who was stopped in the middle
    if not here and not is_fetched:
        _refuse_other_files(folder)  # before any is removed, by whatever name
    for pattern in (f"*/.*{ARRIVING}*", "*/.*.part"):
        for leftover in folder.glob(pattern):
            leftover.unlink(missing_ok=True)
    if here:
        _remove_damaged(here)
        if all((folder / name).exists() for name in here.files()):
            return here
    content = store.read(PASSPORT_NAME)
    passport = _parsed(content, store)
    if here and here.passport.content_hash != passport.content_hash:
        raise UserError(
            f"{folder}: holds prepared data with hash {here.passport.content_hash[:12]}, and "
            f"{store.address} has {passport.content_hash[:12]}; remove the folder, or name another "
            "one with data.prepared"
        )
    there = PreparedData(folder, passport)
    if not here or here.passport != passport:  # a start that was cut off has left files of it
        _remove_damaged(there)
    with storage_errors(folder, "fetching prepared data"):
        folder.mkdir(parents=True, exist_ok=True)
        if not here:
            write_whole(folder / FETCHED, f"{passport.content_hash}\n")
        early, plain = _early_files(passport), _unhashed_files(passport)
        missing = [file for file in early if not (folder / file.name).exists()]
        size = sum(file.bytes for file in missing)
        if missing:
            logger.info(f"fetching {size / 1e6:,.1f} MB of prepared data from {store.address}")
        for file in missing:
            fetch_file(store, folder, file, passport.vocabulary)
        for name in plain:
            if not (folder / name).exists():
                store.download(name, folder / name)
        tokenizer = folder / passport.tokenizer_file
        if sha256_of(tokenizer) != passport.tokenizer_sha256:
            tokenizer.unlink()
            raise _damaged(store, passport.tokenizer_file, "is another tokenizer")
    write_whole(folder / PASSPORT_NAME, content)
    return there


def fetch_file(store: Store, folder: Path, file: ShardFile, vocabulary: int) -> None:
    """Fetches a file of a shard, which gets its name once it is what the passport lists."""
    path = folder / file.name
    beside = path.with_name(f".{path.name}{ARRIVING}")
    for _ in range(TRIES):
        with storage_errors(folder, "fetching prepared data"):
            store.download(file.name, beside)
            problem = _problem_of(beside, file, vocabulary)
            if not problem:
                beside.replace(path)
                return
        beside.unlink(missing_ok=True)
        logger.warning(f"{store.address / file.name}: {problem}; fetching it again")
    raise _damaged(store, file.name, f"{problem}, {TRIES} times")


@contextmanager
def fetching(folder: Path) -> Iterator[None]:
    """While open, this process alone fetches into the folder; refuses where another one does."""
    with storage_errors(folder, "fetching prepared data"):
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    with os.fdopen(descriptor, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(
                f"{folder}: another process fetches prepared data into it; name a folder of its "
                "own for each run and host with data.prepared"
            ) from None
        try:
            yield
        finally:
            if [path.name for path in folder.iterdir()] == [LOCK]:  # nothing has come
                with suppress(OSError):
                    (folder / LOCK).unlink()
                    folder.rmdir()


def _refuse_other_files(folder: Path) -> None:
    with storage_errors(folder, "fetching prepared data"):
        if folder.exists() and any(path.name != LOCK for path in folder.iterdir()):
            raise UserError(
                f"{folder}: holds files that are not prepared data, and nothing was changed; "
                "name another folder with data.prepared"
            )


def _parsed(content: bytes, store: Store) -> Passport:
    try:
        return Passport.model_validate_json(content)
    except ValidationError as error:
        raise UserError(
            f"{store.address / PASSPORT_NAME}: is not a data passport that this version can read "
            f"({problems_of(error)}); publish the data again with dragoman prepare --publish"
        ) from error


def _early_files(passport: Passport) -> list[ShardFile]:
    late = {file.name for file in passport.late_files}
    records = passport.splits.values()
    shards = [file for record in records for file in record.shards if file.name not in late]
    return [*shards, *passport.text_files]


def _unhashed_files(passport: Passport) -> list[str]:
    """Returns the tokenizer, whose size nobody knows, and text of older passports."""
    sides = [side for split in passport.splits.values() for side in (split.source, split.target)]
    text = [side.file for side in sides if side.file and not side.sha256]
    return [passport.tokenizer_file, *text]


def _remove_damaged(here: PreparedData) -> None:
    for file in (*_early_files(here.passport), *here.passport.late_files):
        path = here.folder / file.name
        if path.exists() and (problem := _problem_of(path, file, here.passport.vocabulary)):
            logger.warning(f"{path}: {problem}; it is fetched again")
            path.unlink()
    tokenizer = here.folder / here.passport.tokenizer_file
    if tokenizer.exists() and sha256_of(tokenizer) != here.passport.tokenizer_sha256:
        tokenizer.unlink()


def _problem_of(path: Path, file: ShardFile, vocabulary: int) -> str:
    """Returns why this is not the file that the passport lists; empty: it is."""
    found = sha256_of(path)
    if found != file.sha256:
        return f"sha256 {file.sha256[:12]} expected, but {found[:12]} has arrived"
    if not is_tokens(file):
        return ""
    try:
        ids = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError):
        return "is not a list of integers"
    if ids.ndim != 1 or ids.dtype.kind not in "iu" or not are_pieces(ids, vocabulary):
        return f"holds ids that are not 0 to {vocabulary - 1:,}"
    return ""


def _damaged(store: Store, name: str, why: str) -> CorruptFileError:
    return CorruptFileError(
        f"{store.address / name}: {why}; publish the data again with dragoman prepare --publish"
    )
