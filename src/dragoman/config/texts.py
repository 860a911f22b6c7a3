"""Texts of a recipe: each comes in with the form that it must have, and goes out in it.

An address may hold no credentials, because configs appear in reports that are shared.
"""

import re
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

_LOGIN = re.compile(r"://[^/?#\s]*@")


def _printable(value: str) -> str:
    if value.isprintable():
        return value
    raise PydanticCustomError("text", "text without control characters")


def written_as(pattern: str, in_words: str) -> AfterValidator:
    """Returns a check for text that matches a pattern, described `in_words` in errors."""

    def check(value: str) -> str:
        if re.fullmatch(pattern, value):
            return value
        raise PydanticCustomError("text", "{in_words}", {"in_words": in_words})

    return AfterValidator(check)


def without_password(advice: str) -> AfterValidator:
    """Returns a check for addresses without credentials: configs appear in shared reports."""

    def check(address: str) -> str:
        if _LOGIN.search(address):
            raise ValueError(
                "an address with a user name or password would be shown in the run directory and "
                f"its report; {advice}"
            )
        return address

    return AfterValidator(check)


def hide_login(text: str) -> str:
    """Returns the text with the credentials of its addresses left out."""
    return _LOGIN.sub("://...@", text)


# As long as a path may be. What is a path or an address cannot hold a line feed or a NUL.
Text = Annotated[str, Field(max_length=4096), AfterValidator(_printable)]
Address = Annotated[Text, without_password("fetch the file yourself and name it by its path")]
Sha256 = Annotated[str, written_as("[0-9a-f]{64}", "64 hexadecimal digits, letters in lower case")]
RecipeName = Annotated[
    str,
    written_as(
        "[A-Za-z0-9][A-Za-z0-9._-]{0,199}",
        "1 to 200 letters from a to z or A to Z, digits, dots, hyphens or underscores, beginning "
        "with a letter or a digit",
    ),
]
LanguagePair = Annotated[
    str, written_as("([A-Za-z_]+-[A-Za-z_]+)?", "two language codes, such as en-de, or empty")
]
TestSetName = Annotated[
    str,
    written_as(
        "([A-Za-z0-9][A-Za-z0-9._-]{0,99})?",
        "up to 100 letters from a to z or A to Z, digits, dots, hyphens or underscores, beginning "
        "with a letter or a digit, or empty",
    ),
]
