"""manifest.json of a run: what the run is made of, and who took part in each attempt."""

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from dragoman.config import problems_of
from dragoman.errors import CorruptFileError
from dragoman.rundir import RunDir, read_json


class RunManifest(BaseModel):
    """What training itself reads of it; all else is kept as it is."""

    model_config = ConfigDict(frozen=True, strict=True, extra="allow")

    data_sha256: str = ""
    attempts: list[dict[str, Any]] = []


def read_manifest(run: RunDir) -> RunManifest | None:
    """None: there is none yet."""
    if not run.manifest.exists():
        return None
    try:
        return RunManifest.model_validate(read_json(run.manifest))
    except ValidationError as error:
        raise CorruptFileError(
            f"{run.manifest}: {problems_of(error)}; bring back a copy of it, or name another --run"
        ) from error
