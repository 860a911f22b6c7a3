"""The mirror within an attempt: its newest checkpoint comes in, what is saved goes out."""

import json
import logging
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from dragoman.checkpoints.checkpoint import Owner
from dragoman.checkpoints.finding import newest_whole
from dragoman.checkpoints.mirror import (
    CHECKPOINTS,
    Mirrored,
    fetch_checkpoint,
    is_foreign,
    mirror_address,
    mirrored_checkpoints,
    part_of_rank,
    read_best,
    read_mirrored_state,
)
from dragoman.checkpoints.mirroring import Mirror, MirrorSettings
from dragoman.checkpoints.names import BEST, LATEST, folder_of, point_to
from dragoman.config import Config
from dragoman.distributed.consensus import all_or_none
from dragoman.distributed.group import Group
from dragoman.errors import CorruptFileError, RemoteError, RunError
from dragoman.rundir import RunDir
from dragoman.storage import Store
from dragoman.storage.failures import MISSING

logger = logging.getLogger(__name__)


def bring_checkpoint(
    config: Config, run: RunDir, roots: Sequence[Path], owner: Owner, group: Group
) -> bool:
    """Fetches the newest checkpoint of the mirror where no host has one as new.

    Returns whether the mirror could be read. Collective: every rank must call.
    """
    if not config.checkpoints.mirror:
        return True
    own_step = _newest_step(roots, owner) if group.local_rank == 0 else 0
    newest_here = max(group.gather(own_step))
    found_step = group.on_rank_0(lambda: _bring(config, run, newest_here, owner))
    step = found_step or 0
    has_parts = config.sync.is_local or config.sync.mode == "auto"
    brings_own = bool(step) and has_parts and group.local_rank == 0 and not group.leads
    all_or_none(group, lambda: _bring_own(config, run, step, group) if brings_own else None)
    return found_step is not None


def open_mirror(
    config: Config, run: RunDir, run_id: str, group: Group, was_read: bool = True
) -> Mirror | None:
    """Returns what uploads this host's part of the run; None: nothing is uploaded from here.

    `was_read` is what `bring_checkpoint` has returned. Collective: every rank must call.
    """
    checkpoints = config.checkpoints
    if not checkpoints.mirror:
        return None
    attempt = group.broadcast(secrets.token_hex(16))
    if group.local_rank != 0:
        return None
    has_parts = config.sync.is_local or config.sync.mode == "auto"
    settings = MirrorSettings(
        address=mirror_address(checkpoints.mirror, run),
        run_id=run_id,
        part=part_of_rank(group.rank) if group.leads or has_parts else "",
        keep_last=checkpoints.keep_last,
        bytes_per_s=checkpoints.mirror_bytes_per_s,
        wait_s=checkpoints.mirror_wait_s,
        has_all_records=group.leads,
        attempt=attempt,
        was_read=was_read,
    )
    return Mirror(settings, run)


def _newest_step(roots: Sequence[Path], owner: Owner) -> int:
    """Returns the newest of this host's whole checkpoints; 0: there is none."""
    try:
        newest = newest_whole(roots, owner)
    except RunError:
        return 0
    return newest.step if newest else 0


def _bring(config: Config, run: RunDir, newest_here: int, owner: Owner) -> int | None:
    """Fetches the newest and the best; returns the step of the newest, 0: it is not newer, None:
    the mirror cannot be read, and the run goes on from what is here."""
    store = Store(mirror_address(config.checkpoints.mirror, run))
    try:
        best = read_best(store)
        candidates = []
        for found in mirrored_checkpoints(store, CHECKPOINTS):
            if is_foreign(found, owner):
                logger.warning(
                    f"{store.address}: step {found.step:,} belongs to another run, or to other "
                    "settings of this one; skipped"
                )
            else:
                candidates.append(found)
        step = 0
        for found in candidates:
            if found.step <= newest_here:
                break
            if _fetched(store, CHECKPOINTS, found, run.checkpoints):
                point_to(run.checkpoints, LATEST, folder_of(found.step))
                step = found.step
                break
        best_there = [found for found in candidates if found.step == best != step]
        if step and best_there and not (run.checkpoints / folder_of(best_there[0].step)).is_dir():
            _fetched(store, CHECKPOINTS, best_there[0], run.checkpoints)
        if step and best is not None and (run.checkpoints / folder_of(best)).is_dir():
            point_to(run.checkpoints, BEST, folder_of(best))
    except RemoteError as error:
        if not newest_here:
            raise
        logger.warning(f"{error}; the run goes on from step {newest_here:,}, which is here")
        return None
    if candidates and not step and not newest_here:
        raise RunError(
            f"{store.address}: none of its {len(candidates)} checkpoints is intact; remove what is "
            "there, or name another checkpoints.mirror, to start the run again from step 0"
        )
    return step


def _bring_own(config: Config, run: RunDir, step: int, group: Group) -> None:
    """Fetches what this host has kept on its own, if as many ranks have saved it as there are."""
    store = Store(mirror_address(config.checkpoints.mirror, run))
    part = part_of_rank(group.rank)
    with suppress(RemoteError):  # others send what they have
        for found in mirrored_checkpoints(store, part):
            if found.step == step:
                state = json.loads(read_mirrored_state(store, part, step))
                if state.get("ranks") == group.ranks:
                    _fetched(store, part, found, run.checkpoints)
                return


def _fetched(store: Store, part: str, found: Mirrored, root: Path) -> bool:
    """Fetches a checkpoint; returns False, and logs why, if its content is not what was saved."""
    logger.info(
        f"{store.address}: fetching the checkpoint of step {found.step:,} "
        f"({found.bytes / 1e6:,.1f} MB)"
    )
    try:
        fetch_checkpoint(store, part, found, root)
    except (CorruptFileError, RemoteError) as error:
        if isinstance(error, RemoteError) and error.kind != MISSING:
            raise
        logger.warning(f"{error}; step {found.step:,} of {store.address} is skipped")
        return False
    return True
