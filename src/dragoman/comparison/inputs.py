"""What two runs were given: settings, data and machines."""

import json
from functools import reduce
from typing import Any

from pydantic_core import to_jsonable_python

from dragoman.comparison.aspects import Aspect, Row, Value, differing, measured
from dragoman.config import PATH_KEYS, Config, config_keys
from dragoman.diagnosis.run.facts import RunFacts
from dragoman.diagnosis.run.record import RunRecord
from dragoman.shards.passport import Passport

HASH_DIGITS = 12


def settings_of(a: Config, b: Config) -> Aspect:
    """Compares every key of a recipe but paths: what is in the files is compared by its hash."""
    keys = [key for key, _, _ in config_keys() if key not in PATH_KEYS]
    found = differing(Row(key, _setting(a, key), _setting(b, key)) for key in keys)
    return Aspect("Settings", found, [] if found else ["All settings are the same."])


def _setting(config: Config, key: str) -> Value:
    value: Any = reduce(getattr, key.split("."), config)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    # Sources of text and the like, in one line.
    return json.dumps(to_jsonable_python(value), ensure_ascii=False)


def data_of(a: RunRecord, b: RunRecord) -> Aspect:
    first, second = a.passport, b.passport
    if first is None or second is None:
        root = (a if first is None else b).directory.root
        why = f"Not known, because {root} has no manifest that this version can read."
        return Aspect("Data", [], [why])
    if first.content_hash == second.content_hash:
        same = f"Both learned from the same data, hash {first.content_hash[:HASH_DIGITS]}."
        return Aspect("Data", [], [same])
    if first.tokenizer_sha256 == second.tokenizer_sha256:
        result = "The tokenizers are the same, so losses on the same sentences can be compared."
    else:
        result = (
            "The tokenizers differ, so losses per token are not comparable; BLEU and chrF of the "
            "same sentences are."
        )
    return Aspect("Data", differing(_data_rows(first, second)), [result])


def _data_rows(first: Passport, second: Passport) -> list[Row]:
    hashes = [
        ("data hash", first.content_hash, second.content_hash),
        ("tokenizer hash", first.tokenizer_sha256, second.tokenizer_sha256),
    ]
    rows = [Row(what, a[:HASH_DIGITS], b[:HASH_DIGITS]) for what, a, b in hashes]
    rows.append(measured("vocabulary", first.vocabulary, second.vocabulary, "pieces"))
    for split in dict.fromkeys([*first.splits, *second.splits]):
        one, other = _sizes(first, split), _sizes(second, split)
        for what, unit in dict.fromkeys([*one, *other]):
            sizes = one.get((what, unit)), other.get((what, unit))
            rows.append(measured(f"{split}: {what}", *sizes, unit))
    return rows


def _sizes(passport: Passport, split: str) -> dict[tuple[str, str], int]:
    """Returns (what, unit) -> size; empty: there is no such split."""
    record = passport.splits.get(split)
    if record is None:
        return {}
    return {
        ("pairs", "lines"): record.pairs_kept,
        ("source text", "bytes"): record.source.bytes,
        ("target text", "bytes"): record.target.bytes,
        ("source tokens", "tokens"): record.source.tokens,
        ("target tokens", "tokens"): record.target.tokens,
    }


def machines_of(a: RunFacts, b: RunFacts) -> Aspect:
    one, other = _machines(a), _machines(b)
    found = differing(Row(what, one.get(what), other.get(what)) for what in one | other)
    same = "Machines and versions are the same, as far as both runs recorded them."
    return Aspect("Machines", found, [] if found else [same])


def _machines(run: RunFacts) -> dict[str, Value]:
    """Returns those of the last attempt, which made the model."""
    facts: dict[str, Value] = {"attempts": len(run.attempts)}
    if run.attempts:
        last = run.attempts[-1]
        devices = [start.device for start in last.starts.values()]
        names = [f"{found.name}, {found.precision}" for found in last.devices.values()]
        facts |= {
            "workers": last.ranks,
            "hosts": ", ".join(last.host_names),
            "devices": ", ".join(dict.fromkeys(devices)) or None,
            "device names": ", ".join(dict.fromkeys(names)) or None,
        }
    return facts | {f"version of {name}": found for name, found in run.record.versions.items()}
