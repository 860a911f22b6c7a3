"""manifest.json: what a run is made of, and who took part in each attempt. Without torch."""

import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from dragoman import __version__
from dragoman.config import Config, Sha256
from dragoman.distributed.launchers import place
from dragoman.jsonfile import read_model
from dragoman.rundir import RunDir, read_json, write_json
from dragoman.shards.passport import PreparedData
from dragoman.telemetry.record.redaction import redacted, secret_values
from dragoman.version import code_hash

START_OPTIONS = "DRAGOMAN_START_OPTIONS"
"""The environment variable in which the starter gives the workers those of its options that say
where they run: their own command line has none."""
START_COMMAND = "DRAGOMAN_START_COMMAND"
"""The environment variable in which it gives them its command line, as it was typed."""
START_FOLDER = "DRAGOMAN_START_FOLDER"
"""The environment variable for the folder in which it was started: on other hosts workers have
another."""


FORECAST = "DRAGOMAN_FORECAST"
"""The environment variable in which the starter gives rank 0 its forecast, as a line of an event
file."""


class RunManifest(BaseModel):
    """The part of manifest.json that training itself reads; all else is kept as it is."""

    model_config = ConfigDict(frozen=True, strict=True, extra="allow")

    data_sha256: Sha256 | Literal[""] = ""
    attempts: list[dict[str, Any]] = []
    micro_batch_tokens: int = 0
    """As the run was started, or as it has found it; 0: not known."""


def read_manifest(run: RunDir) -> RunManifest | None:
    """Returns the manifest of a run; None: there is none yet."""
    if not run.manifest.exists():
        return None
    return read_model(run.manifest, RunManifest, "bring back a copy of it, or name another --run")


def record_attempt(
    run: RunDir,
    config: Config,
    prepared: PreparedData,
    attempt: int,
    members: list[dict[str, str]],
) -> None:
    """Adds an attempt to manifest.json, and at the first one what the run is made of."""
    own = recorded_command(sys.argv[1:], config)
    manifest: dict[str, Any] = read_json(run.manifest) if run.manifest.exists() else {}
    manifest.setdefault("data_sha256", prepared.passport.content_hash)
    manifest.setdefault("tokenizer_sha256", prepared.passport.tokenizer_sha256)
    manifest.setdefault("data", prepared.passport.model_dump(mode="json"))
    # This file comes home from other hosts, where the config stays behind.
    manifest["micro_batch_tokens"] = config.training.micro_batch_limit
    manifest.setdefault("attempts", []).append(
        {
            "attempt": attempt,
            "command": shlex.split(os.environ.get(START_COMMAND, "")) or own,
            "rank_0_command": own,
            "launcher": place().launcher,
            "folder": os.environ.get(START_FOLDER) or str(Path.cwd()),
            "options": shlex.split(os.environ.get(START_OPTIONS, "")),
            "members": members,
            "versions": {
                "dragoman": __version__,
                "code": code_hash(),
                "commit": _commit(),
                "python": platform.python_version(),
                "torch": version("torch"),
                "numpy": version("numpy"),
            },
        }
    )
    write_json(run.manifest, manifest)


def recorded_command(arguments: Sequence[str], config: Config) -> list[str]:
    """Returns the command with these arguments, without what is secret in it."""
    secrets = secret_values(os.environ, [config.notify.webhook_variable])
    return ["dragoman", *(redacted(word, secrets) for word in arguments)]


def _commit() -> str:
    """Returns the commit of a checkout; empty for an installed package."""
    try:
        shown = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return shown.stdout.strip()
