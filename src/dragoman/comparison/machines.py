"""On what the two ran: hosts, workers, devices, and versions of the software."""

from typing import Any

from dragoman.comparison.rows import ComparedRun, Group, Row, Value, differing, row
from dragoman.errors import CorruptFileError
from dragoman.rundir import RunDir, read_json


def machines_of(a: ComparedRun, b: ComparedRun) -> Group:
    one, other = _facts(a), _facts(b)
    rows: list[Row] = [
        row(what, one.get(what), other.get(what)) for what in dict.fromkeys([*one, *other])
    ]
    found = differing(rows)
    same = "Machines and versions are the same, as far as both runs recorded them."
    return Group("Machines", found, [] if found else [same])


def _facts(run: ComparedRun) -> dict[str, Value]:
    """Of the last attempt, which made the model."""
    facts: dict[str, Value] = {"attempts": len(run.facts.attempts)}
    if run.facts.attempts:
        last = run.facts.attempts[-1]
        devices = [start.device for start in last.starts.values()]
        names = [f"{found.name}, {found.precision}" for found in last.devices.values()]
        facts |= {
            "workers": last.ranks,
            "hosts": ", ".join(last.host_names),
            "devices": _told(devices),
            "device names": _told(names),
        }
    return facts | {f"version of {name}": text for name, text in _versions(run.directory).items()}


def _told(words: list[str]) -> str | None:
    return ", ".join(dict.fromkeys(words)) or None


def _versions(run: RunDir) -> dict[str, str]:
    """Of the last attempt; empty: they are not in the manifest, or it cannot be read."""
    try:
        attempts: Any = read_json(run.manifest).get("attempts")
        versions: Any = attempts[-1].get("versions")
        return {str(name): str(text) for name, text in versions.items()}
    except (CorruptFileError, AttributeError, IndexError, KeyError, TypeError):
        return {}
