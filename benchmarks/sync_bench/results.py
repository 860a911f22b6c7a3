"""Keeps each finished measurement in a file, so that none is made twice.

The name of a file says what was measured and ends with a hash of all settings: what was measured
with others is left alone and is not found. The version of the code is not one of the settings.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dragoman.rundir import read_json, write_json

HASH_DIGITS = 12


class Results:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, title: str, settings: Mapping[str, object]) -> Path:
        return self.folder / f"{title}-{settings_hash(settings)}.json"

    def find(self, title: str, settings: Mapping[str, object]) -> dict[str, Any] | None:
        """Returns what was measured with exactly these settings; None: it is not there yet."""
        path = self.path(title, settings)
        return dict(read_json(path)["measured"]) if path.exists() else None

    def find_or_measure(
        self,
        title: str,
        settings: Mapping[str, object],
        measure: Callable[[], Mapping[str, Any]],
    ) -> Mapping[str, Any]:
        """Returns what is there, or measures it and keeps it. What `measure` raises passes."""
        found = self.find(title, settings)
        if found is not None:
            return found
        measured = measure()
        content = {"settings": dict(settings), "measured": dict(measured)}
        write_json(self.path(title, settings), content)
        return measured


def settings_hash(settings: Mapping[str, object]) -> str:
    """Returns the same digits for the same settings, in whatever order they are given."""
    text = json.dumps(settings, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]
