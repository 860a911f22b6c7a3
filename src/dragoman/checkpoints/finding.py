"""Finds the checkpoints of a run, verifies them, and checks which run they belong to."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from dragoman.checkpoints import names
from dragoman.checkpoints.checkpoint import Checkpoint, Owner
from dragoman.checkpoints.names import (
    FORMAT,
    MANIFEST,
    MODEL,
    OPTIMIZER,
    REPLACED,
    STATE,
    TOKENIZER,
    folder_of,
    step_of,
)
from dragoman.checkpoints.schema import check_file, read_manifest, read_state_head
from dragoman.errors import CorruptFileError, RunError, UserError

logger = logging.getLogger(__name__)

Check = Callable[[Checkpoint], None]
"""Raises CorruptFileError for a checkpoint whose files are intact, but unusable for the caller."""
LONGEST_STEP = 20
"""Digits of the number of a step."""


def verify(checkpoint: Checkpoint, owner: Owner | None = None) -> None:
    """Raises CorruptFileError unless every file is there with its size and hash.

    With an `owner`, also unless it belongs to that run, as far as its manifest names an owner.
    """
    folder = checkpoint.folder
    manifest = read_manifest(folder)
    if manifest.step not in (None, checkpoint.step):
        raise CorruptFileError(
            f"{folder}: is of step {checkpoint.step}, and its manifest of step {manifest.step}"
        )
    for what in _differing(manifest.owner, owner or {}):
        raise CorruptFileError(
            f"{folder}: belongs to another run: its {what} is {manifest.owner[what]!r}, "
            f"and this run's {(owner or {})[what]!r}"
        )
    if missing := {MODEL, OPTIMIZER, STATE, TOKENIZER} - manifest.files.keys():
        raise CorruptFileError(f"{folder / MANIFEST}: does not list {', '.join(sorted(missing))}")
    for name, saved in manifest.files.items():
        check_file(folder / name, saved)
    state = read_state_head(folder)
    if state.step != checkpoint.step:
        raise CorruptFileError(
            f"{folder}: is of step {checkpoint.step}, and its state of step {state.step}"
        )
    if state.format > FORMAT:
        raise CorruptFileError(
            f"{folder}: has format {state.format}, and this Dragoman reads up to {FORMAT}; "
            "update it"
        )
    if state.format < FORMAT:
        raise CorruptFileError(
            f"{folder}: has format {state.format}, whose model counts positions otherwise than "
            "this Dragoman; train the run again, or use the version that saved it"
        )


def is_foreign(checkpoint: Checkpoint, owner: Owner) -> bool:
    """Returns whether its manifest names another run as its owner."""
    try:
        theirs = read_manifest(checkpoint.folder).owner
    except CorruptFileError:
        return False
    return bool(_differing(theirs, owner))


def all_checkpoints(root: Path) -> list[Checkpoint]:
    """Returns every folder named like a checkpoint, oldest first, intact or not."""
    found = {checkpoint.step: checkpoint for checkpoint in _candidates(root)}
    return [found[step] for step in sorted(found)]


def newest_whole(
    roots: Path | Sequence[Path], owner: Owner | None = None, check: Check | None = None
) -> Checkpoint | None:
    """Returns the newest checkpoint that verifies, in any of `roots`; None if there is none at all.

    Of two that are equally new, the one in the first root wins. `check` is called for each whose
    files are intact.
    """
    roots = [roots] if isinstance(roots, Path) else roots
    candidates, unreadable = _newest_first(roots)
    if newest := next(_whole(candidates, owner, check), None):
        return newest
    where = ", ".join(str(root) for root in roots)
    if candidates:
        raise RunError(
            f"{where}: none of its {len(candidates)} checkpoints is intact; move the folder away "
            "to start the run again from step 0"
        )
    if unreadable:
        raise RunError(f"{where}: cannot be read; repair the disk, or name another --run")
    return None


def whole_steps(
    roots: Sequence[Path], owner: Owner | None = None, check: Check | None = None
) -> list[int]:
    """Returns the steps of the checkpoints that verify, as in `newest_whole`, newest first."""
    candidates, _ = _newest_first(roots)
    return [checkpoint.step for checkpoint in _whole(candidates, owner, check)]


Fingerprint = Callable[[Checkpoint], str]
"""Returns a hash that is equal for checkpoints from which a run can go on together."""


def find_equal(
    roots: Sequence[Path],
    step: int,
    sha256: str,
    fingerprint: Fingerprint = Checkpoint.manifest_sha256,
) -> Checkpoint | None:
    """Returns the checkpoint of a step with this fingerprint, verified by another process."""
    for root in roots:
        for folder in (folder_of(step), REPLACED + folder_of(step)):
            checkpoint = Checkpoint(root / folder)
            if sha256 and fingerprint(checkpoint) == sha256:
                return checkpoint
    return None


def find_checkpoint(root: Path, which: str, owner: Owner | None = None) -> Checkpoint:
    """Returns the checkpoint named by `which` (best, latest or a step), verified as in `verify`."""
    if which in (names.BEST, names.LATEST):
        link = root / which
        if link.exists():
            checkpoint = Checkpoint(link.resolve())
        elif link.is_symlink():
            checkpoint = _being_replaced(link)
        elif newest := newest_whole(root, owner):
            return newest
        else:
            raise UserError(f"{root}: holds no checkpoint yet; train the run first")
    elif which.isdecimal() and len(which) <= LONGEST_STEP:
        found = {checkpoint.step: checkpoint for checkpoint in all_checkpoints(root)}
        if int(which) not in found:
            steps = ", ".join(str(step) for step in found) or "none"
            raise UserError(f"{root}: has no checkpoint of step {which}; there are: {steps}")
        checkpoint = found[int(which)]
    else:
        raise UserError(f"checkpoint {which!r} should be best, latest or a step number")
    verify(checkpoint, owner)
    return checkpoint


def _being_replaced(link: Path) -> Checkpoint:
    """Returns what `link` points to while that folder is being replaced."""
    target = link.readlink()
    found = all_checkpoints(link.parent)
    for checkpoint in found:
        if target == Path(folder_of(checkpoint.step)):
            return checkpoint
    steps = ", ".join(str(checkpoint.step) for checkpoint in found) or "none"
    raise UserError(
        f"{link.parent}: {link.name} points to {target}, which is missing; "
        f"name a step with --checkpoint, there are: {steps}"
    )


def _newest_first(roots: Sequence[Path]) -> tuple[list[Checkpoint], bool]:
    """Returns all candidates of all roots, and whether a root could not be read."""
    candidates: list[Checkpoint] = []
    unreadable = False
    for root in reversed(roots):
        try:
            candidates += _candidates(root)
        except OSError as error:
            logger.warning(
                f"{root}: cannot be read ({error.strerror}); its checkpoints are skipped"
            )
            unreadable = True
    candidates.sort(key=lambda checkpoint: checkpoint.step)  # stable: the best choice is last
    return candidates[::-1], unreadable


def _whole(
    candidates: Iterable[Checkpoint], owner: Owner | None, check: Check | None
) -> Iterator[Checkpoint]:
    """Yields the candidates that verify; logs a warning for each of the others."""
    for checkpoint in candidates:
        try:
            verify(checkpoint, owner)
            if check:
                check(checkpoint)
        except CorruptFileError as error:
            logger.warning(f"{error}; checkpoint {checkpoint.folder.name} is skipped")
        else:
            yield checkpoint


def _candidates(root: Path) -> list[Checkpoint]:
    """Returns the candidates in a root; within one step, replaced folders before new ones."""
    if not root.is_dir():
        return []
    found = [
        Checkpoint(path)
        for path in root.iterdir()
        if step_of(path.name.removeprefix(REPLACED)) is not None and path.is_dir()
    ]
    return sorted(found, key=lambda c: (c.step, not c.folder.name.startswith(REPLACED)))


def _differing(theirs: Owner, ours: Owner) -> list[str]:
    return sorted(what for what in ours.keys() & theirs.keys() if theirs[what] != ours[what])
