"""The id of a run: a run directory comes in, the id that distinguishes it from others goes out.

Without torch.
"""

import re
from contextlib import suppress

from dragoman.checkpoints.schema import read_manifest
from dragoman.errors import CorruptFileError
from dragoman.rundir import MOST_ID_BYTES, RunDir, read_bounded

_ID = re.compile(r"[0-9a-f]{8,64}")


def known_id(run: RunDir) -> str:
    """Returns the run's id; if its file was lost, the one that the run's checkpoints agree on.

    Empty if the run has not been claimed yet, or only by a version without ids.
    """
    return run_id(run) if run.id.exists() else _id_of_checkpoints(run)


def run_id(run: RunDir) -> str:
    """Returns the id of a run that has been claimed."""
    try:
        text = read_bounded(run.id, MOST_ID_BYTES).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CorruptFileError(f"{run.id}: cannot be read ({error})") from error
    if not _ID.fullmatch(text):
        raise CorruptFileError(
            f"{run.id}: should hold the run's id, some hexadecimal digits; the manifests of the "
            "run's checkpoints have it as the id of their owner"
        )
    return text


def _id_of_checkpoints(run: RunDir) -> str:
    """Returns the owner's id from the checkpoints; empty if there is none or they disagree."""
    found: set[str] = set()
    for folder in run.checkpoints.glob("step-*"):
        with suppress(CorruptFileError):
            found.add(read_manifest(folder).owner.get("id", ""))
    found.discard("")
    agreed = found.pop() if len(found) == 1 else ""
    return agreed if _ID.fullmatch(agreed) else ""
