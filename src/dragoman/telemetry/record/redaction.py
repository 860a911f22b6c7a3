"""Keeps secrets out of what a run writes about itself: log files and recorded commands."""

import re
from collections.abc import Iterable, Mapping, Sequence

HIDDEN = "***"
SHORTEST_SECRET = 8
"""Characters; a shorter value is likely to be an ordinary word that stands elsewhere too."""

_LOGIN = re.compile(r"(?<=://)[^/\s@]+(?=@)")
_SECRET_NAME = re.compile(
    r"(?i).*(secret|token|password|passwd|(api|access|account|sas|master|encryption)_?key"
    r"|webhook(_url)?)"
)


def secret_values(variables: Mapping[str, str], names: Iterable[str] = ()) -> list[str]:
    """Returns the values of those environment variables that hold a secret: the named ones, and
    those whose names say so, such as MLFLOW_TRACKING_PASSWORD."""
    named = set(names)
    found = {
        value
        for name, value in variables.items()
        if (name in named or _SECRET_NAME.fullmatch(name)) and len(value) >= SHORTEST_SECRET
    }
    return sorted(found, key=len, reverse=True)  # one may be a part of another


def redacted(text: str, secrets: Sequence[str] = ()) -> str:
    """Returns the text without logins in addresses and without these secrets."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return _LOGIN.sub(HIDDEN, text)
