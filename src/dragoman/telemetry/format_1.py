"""Upgrades events of format 1, which had in prose what format 2 has fields for.

The phrases below are those that programs of format 1 wrote. They are frozen: nothing writes them
any more, and no other module reads a fact out of a sentence.
"""

import re
from typing import Any

_NAMED_RANK = re.compile(r"\brank (\d+) on ([^\s:,;]+)")
_ROLLED_BACK = re.compile(r"; back to step ([\d,]+) with ([\d.e+-]+) times the learning rate")
_PIECES = {"halves": 2, "quarters": 4, "eighths": 8}
_REPEATED_IN = re.compile(r"the step is repeated in (halves|quarters|eighths|\d+)")
_LIMIT = re.compile(r"training\.(steps|epochs|hours) = ")
_CORES = re.compile(r"(\d+) logical cores")
_SPEED = re.compile(r"(\d+) Mbit/s")
_MEGABIT = 1e6 / 8

RENAMED = {"trouble": "incident"}
"""Kinds of format 1 -> what they are called now."""


def upgraded(content: dict[str, Any]) -> dict[str, Any]:
    """Returns an event of format 1 as format 2 writes it, and one of format 2 unchanged."""
    match content:
        case {"kind": "trouble", "what": str(text)}:
            return {**content, "kind": "incident", **_incident(text)}
        case {"kind": "attempt-ended", "reason": str(text)} if "cause" not in content:
            return {**content, **_end(str(content.get("state")), text)}
        case {"kind": "sensors-found", "about": dict(about)} if "cores" not in content:
            return {**content, **_sensors(about)}
    return content


def _incident(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {"category": "other", "message": text}
    found["ranks"] = [int(rank) for rank, _ in _NAMED_RANK.findall(text)]
    if back := _ROLLED_BACK.search(text):
        step, factor = int(back[1].replace(",", "")), float(back[2])
        return {**found, "category": "rollback", "rollback_step": step, "rate_factor": factor}
    if "ran out of memory" in text:
        pieces = _REPEATED_IN.search(text)
        count = pieces and (_PIECES.get(pieces[1]) or int(pieces[1]))
        return {**found, "category": "out-of-memory", "pieces": count}
    if text.endswith("the update was skipped"):
        return {**found, "category": "update-skipped"}
    return found


def _end(state: str, text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if state == "finished" and (limit := _LIMIT.match(text)):
        found["cause"] = limit[1]
    elif state == "finished" and text.startswith("no better "):
        found["cause"] = "patience"
    # Only the first line names the culprit; those below are about the others.
    if named := _NAMED_RANK.search(text.partition("\n")[0]):
        found |= {"culprit_rank": int(named[1]), "culprit_host": named[2]}
    return found


def _sensors(about: dict[str, Any]) -> dict[str, Any]:
    texts = {device: text for device, text in about.items() if isinstance(text, str)}
    cores = _CORES.search(texts.get("cpu", ""))
    speeds = {
        device.removeprefix("network/"): int(speed[1]) * _MEGABIT
        for device, text in texts.items()
        if device.startswith("network/") and (speed := _SPEED.search(text)) and int(speed[1])
    }
    return {"cores": int(cores[1]) if cores else None, "link_bytes_per_s": speeds}
