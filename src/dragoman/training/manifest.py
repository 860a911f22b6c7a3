"""manifest.json of a run: what the run is made of, and who took part in each attempt."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from dragoman.jsonfile import read_model
from dragoman.rundir import RunDir


class RunManifest(BaseModel):
    """What training itself reads of it; all else is kept as it is."""

    model_config = ConfigDict(frozen=True, strict=True, extra="allow")

    data_sha256: str = ""
    attempts: list[dict[str, Any]] = []


def read_manifest(run: RunDir) -> RunManifest | None:
    """None: there is none yet."""
    if not run.manifest.exists():
        return None
    return read_model(run.manifest, RunManifest, "bring back a copy of it, or name another --run")
