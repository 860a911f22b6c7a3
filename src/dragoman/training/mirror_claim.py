"""Whose mirror is it? A run that is only there comes here, and another's is refused.

A machine that has nothing but the recipe and the mirror so becomes one that has had the run before.
Without torch.
"""

import logging
import os
import tempfile
from pathlib import Path

from dragoman.checkpoints.mirror import (
    ARRIVING,
    CONFIG,
    fetch_first_records,
    fetch_later_records,
    mirror_address,
    mirrored_id,
    refuse_another_run,
)
from dragoman.checkpoints.run_id import known_id
from dragoman.config import Config, load_config
from dragoman.errors import RemoteError, UserError
from dragoman.rundir import RunDir
from dragoman.storage import Store
from dragoman.training.claim import RUN_ID, has_begun, incompatible_changes, is_empty_folder

logger = logging.getLogger(__name__)


def join_mirror(config: Config, run: RunDir) -> None:
    """Brings the records of a run that is only in its mirror; refuses the mirror of another run.

    A mirror that cannot be read stops a run that is new here, since it may be older there, and no
    other.
    """
    if not config.checkpoints.mirror:
        return
    store = Store(mirror_address(config.checkpoints.mirror, run))
    own_id = known_id(run)
    is_arriving = (run.root / ARRIVING).exists()  # a start that was cut off
    try:
        found_id = mirrored_id(store)
        refuse_another_run(store, found_id, os.environ.get(RUN_ID, "") or own_id)
        is_new_here = not own_id and (is_empty_folder(run.root) or not run.root.exists())
        if found_id and (is_new_here or is_arriving):
            _refuse_another_config(store, config)
            fetch_first_records(store, run.root)
            logger.info(f"{run.root}: goes on from {store.address}")
        elif found_id and found_id == own_id and fetch_later_records(store, run):
            logger.info(f"{run.root}: {store.address} has later attempts; their records are here")
    except RemoteError as error:
        if is_arriving or not has_begun(run):
            raise
        logger.warning(f"{error}; the run goes on from what is here")


def _refuse_another_config(store: Store, config: Config) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / CONFIG
        if store.size(CONFIG) is None:  # lost; checkpoints know most of it
            return
        store.download(CONFIG, path)
        changes = incompatible_changes(load_config(path), config)
    if changes:
        key, old, new = changes[0]
        raise UserError(
            f"{store.address}: holds a run that was started with {key} = {old!r}, and now it is "
            f"{new!r}; set it back, or name another folder with --run or another "
            "checkpoints.mirror"
        )
