"""Which settings differed: every key of a recipe is looked at."""

import json
from functools import reduce
from typing import Any

from pydantic_core import to_jsonable_python

from dragoman.comparison.rows import ComparedRun, Group, Value, differing, row
from dragoman.config import Config, config_keys


def settings_of(a: ComparedRun, b: ComparedRun) -> Group:
    rows = [
        row(key, _value(a.facts.config, key), _value(b.facts.config, key))
        for key, _, _ in config_keys()
    ]
    found = differing(rows)
    return Group("Settings", found, [] if found else ["All settings are the same."])


def _value(config: Config, key: str) -> Value:
    value: Any = reduce(getattr, key.split("."), config)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    # Sources of text and the like, in one line.
    return json.dumps(to_jsonable_python(value), ensure_ascii=False)
