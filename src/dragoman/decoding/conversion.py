"""Checkpoints converted for CTranslate2 and kept in the run, for the next start.

runs/<name>/ctranslate2/<key>/
  model.bin, config.json, shared_vocabulary.json
  manifest.json           size and SHA-256 of each of these

The key is a hash of the weights, the tokenizer, the precision and the converter's version. A folder
is written aside and renamed, so it is whole or not there; what does not verify is replaced.
"""

import hashlib
import logging
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.checkpoints.names import MANIFEST
from dragoman.checkpoints.schema import SavedFile, check_file, read_manifest
from dragoman.decoding.ctranslate2_model import CONVERTER, MODEL_FILES, write_model
from dragoman.decoding.engine import Precision
from dragoman.decoding.trained import Chosen, load_model
from dragoman.errors import CorruptFileError, StorageError, storage_errors
from dragoman.rundir import RunDir, sha256_of, sync_folder, write_json

if TYPE_CHECKING:
    from torch import Tensor

    from dragoman.model.transformer import Transformer

logger = logging.getLogger(__name__)

KEPT = 4
"""Converted models that stay in a run; the one used longest ago goes first."""
_ASIDE = ".unfinished-"
_ABANDONED_S = 3600.0
"""A folder of another process that is older than this was left by a crash."""


@contextmanager
def converted(run: RunDir | None, chosen: Chosen, precision: Precision) -> Iterator[Path]:
    """Yields the folder of the converted model, to be loaded right away.

    Without a run, or where it cannot be written, the folder is a temporary one, and gone
    afterwards.
    """
    if run is None:
        import torch  # noqa: PLC0415 - as below

        model = load_model(chosen, torch.device("cpu"))
        with _temporary(chosen.checkpoints[-1].folder, chosen, model, precision) as temporary:
            yield temporary
        return
    folder = run.converted / conversion_key(chosen, precision)
    if is_whole(folder):
        with suppress(OSError):
            os.utime(folder)  # used just now
        yield folder
        return
    import torch  # noqa: PLC0415 - takes longer than all the rest, and is not needed above

    model = load_model(chosen, torch.device("cpu"))
    try:
        with storage_errors(run.converted, "converting a model for CTranslate2"):
            _write_whole(folder, chosen, model.state_dict(), precision)
    except StorageError as error:
        logger.info(f"{error.path}: {error.reason}; converting to a temporary folder instead")
        with _temporary(run.converted, chosen, model, precision) as temporary:
            yield temporary
        return
    yield folder


@contextmanager
def _temporary(
    place: Path, chosen: Chosen, model: "Transformer", precision: Precision
) -> Iterator[Path]:
    """Yields a folder that is gone afterwards; `place` is named where there can be none."""
    # Inside, errors of whoever loads the model pass through: they are not about this folder.
    with ExitStack() as stack:
        with storage_errors(place, "converting a model for CTranslate2"):
            named = tempfile.TemporaryDirectory(prefix="dragoman-ctranslate2-")
            temporary = Path(stack.enter_context(named))
        with storage_errors(temporary, "converting a model for CTranslate2"):
            write_model(
                *(temporary, chosen.model, model.state_dict()), *(chosen.tokenizer, precision)
            )
        yield temporary


def conversion_key(chosen: Chosen, precision: Precision) -> str:
    """Returns a hash of all that the converted files depend on."""
    weights = [checkpoint.weights_sha256() for checkpoint in chosen.checkpoints]
    tokenizer = hashlib.sha256(chosen.tokenizer.model).hexdigest()
    shape = chosen.model.model_dump_json()
    parts = [*weights, tokenizer, shape, precision, str(CONVERTER), version("ctranslate2")]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def is_whole(folder: Path) -> bool:
    """Returns whether all files are as they were written."""
    try:
        files = read_manifest(folder).files
        if set(files) != set(MODEL_FILES):
            return False
        for name, saved in files.items():
            check_file(folder / name, saved)
    except CorruptFileError:
        return False
    return True


def _write_whole(
    folder: Path, chosen: Chosen, weights: "dict[str, Tensor]", precision: Precision
) -> None:
    root = folder.parent
    root.mkdir(exist_ok=True)
    aside = _new_aside(root)
    aside.mkdir()
    try:
        write_model(aside, chosen.model, weights, chosen.tokenizer, precision)
        files = {}
        for name in MODEL_FILES:
            with (aside / name).open("rb") as file:
                os.fsync(file.fileno())
            saved = SavedFile(bytes=(aside / name).stat().st_size, sha256=sha256_of(aside / name))
            files[name] = saved.model_dump()
        write_json(aside / MANIFEST, {"files": files})
        sync_folder(aside)
        _put_in_place(aside, folder)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    _prune(root, folder)


def _put_in_place(aside: Path, folder: Path) -> None:
    """Renames; what another process has put there meanwhile stays if it is whole."""
    try:
        aside.rename(folder)
    except OSError:
        if is_whole(folder):
            shutil.rmtree(aside, ignore_errors=True)
            return
        torn = _new_aside(folder.parent)
        folder.rename(torn)
        aside.rename(folder)
        shutil.rmtree(torn, ignore_errors=True)
    sync_folder(folder.parent)


def _new_aside(root: Path) -> Path:
    return root / f"{_ASIDE}{secrets.token_hex(8)}"


def _prune(root: Path, newest: Path) -> None:
    """Removes what a crash left, and all but the converted models used last."""
    with suppress(OSError):
        folders = [path for path in root.iterdir() if path.is_dir()]
        used_at = {path: path.stat().st_mtime for path in folders}
        now = newest.stat().st_mtime
        left = [path for path in folders if path.name.startswith(_ASIDE)]
        known = sorted((path for path in folders if path not in left), key=used_at.__getitem__)
        abandoned = [path for path in left if used_at[path] < now - _ABANDONED_S]
        for path in [*abandoned, *known[:-KEPT]]:
            if path != newest:
                shutil.rmtree(path, ignore_errors=True)
