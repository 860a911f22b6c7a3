"""Reads TOML that a person has written; what is wrong with it is told by its line and its key."""

import re
import tomllib
from pathlib import Path
from typing import Any

from dragoman.config.problems import in_one_line
from dragoman.errors import ConfigError
from dragoman.rundir import read_bounded

MOST_BYTES = 1_000_000
"""Most bytes of a recipe or a host list."""


def read_toml_text(path: Path) -> str:
    """Reads a recipe or a host list that a user names, which may be any file.

    FileNotFoundError is left to the caller."""
    try:
        # Editors on Windows begin a file with a byte order mark, which TOML does not allow.
        return read_bounded(path, MOST_BYTES).decode("utf-8-sig")
    except FileNotFoundError:
        raise
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: cannot be read as UTF-8 text (byte {error.start + 1:,} is not); name a TOML "
            "file, saved as UTF-8"
        ) from error
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be read ({error.strerror}); name a TOML file of at most 1 MB"
        ) from error


def parse_toml(text: str, origin: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ConfigError(
            f"{origin}: not valid TOML: its tables or lists are nested too deeply; flatten them"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{origin}: not valid TOML: {_toml_problem(str(error), text)}") from error
    except ValueError as error:  # Python's own bound on the digits of an integer
        raise ConfigError(
            f"{origin}: not valid TOML: a number has too many digits; shorten it"
        ) from error


_LINE_HINTS = {
    "Cannot overwrite": "the key is there twice; keep one of the two",
    "Cannot declare": "the section is there twice; put its keys together",
    "Invalid value": "its value cannot be read; write text in straight quotes, numbers and true or "
    "false without",
    "Expected newline": "something follows its value; write one key a line, numbers with a decimal "
    "point, and lists in [ ]",
    "Expected '='": "no value follows; write it as name = value",
}
"""How a parser's message begins -> what is wrong, and what to do."""


def _toml_problem(message: str, text: str) -> str:
    """Returns what is wrong with which line: its key is repeated, and its value, which may be a
    secret, is not."""
    found = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)", message)
    if not found:
        return f"{message}; correct it"
    lines = text.split("\n")
    number = int(found[1] or len(lines))
    line = lines[number - 1].strip()
    key = line if re.fullmatch(r"\[+[^\[\]]+\]+", line) else line.partition("=")[0].strip()
    is_key = key != line or line.startswith("[")
    shown = f", {in_one_line(key)}" if key and is_key else ""
    for begins, hint in _LINE_HINTS.items():
        if message.startswith(begins):
            return f"line {number:,}{shown}: {hint}"
    return f"line {number:,}{shown}: {message[: found.start()]}; correct that line"
