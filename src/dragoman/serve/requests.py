"""What a client asks for: the bytes of a request come in, checked fields go out."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import parse_qs

from pydantic import BaseModel, Field, ValidationError, field_validator
from pydantic_core import from_json
from python_multipart.multipart import parse_options_header
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from dragoman.corpus.text import is_unicode
from dragoman.serve.limits import Limits, RefusedError

MOST_FIELDS = 1000
LARGE_BYTES = 50_000
AUTO = "auto"

Text = Annotated[str, Field(description="Text in UTF-8, without NUL characters.")]
Code = Annotated[
    str, Field(description="Code of a language, as /languages has it.", examples=["en"])
]
Key = Annotated[str | None, Field(description="Needed if keyRequired is set in the settings.")]

SHOULD_BE = {
    "q": "should be a text, or a list of texts",
    "source": "should be the code of a language, or auto",
    "target": "should be the code of a language",
    "format": "should be text or html",
    "alternatives": "should be a number within the limit of this server",
    "api_key": "should be a text",
}


class Question(BaseModel):
    """What all requests with a text have."""

    q: Text | list[Text]
    api_key: Key = None

    @property
    def texts(self) -> list[str]:
        return [self.q] if isinstance(self.q, str) else self.q

    @field_validator("q")
    @classmethod
    def _is_clean(cls, q: str | list[str]) -> str | list[str]:
        for text in [q] if isinstance(q, str) else q:
            if "\0" in text or not is_unicode(text):
                raise ValueError
        return q


class DetectQuestion(Question):
    q: Text


class TranslateQuestion(Question):
    source: Annotated[str, Field(description="Code of a language, or auto.", examples=["en"])]
    target: Code
    format: Literal["text", "html"] = "text"
    alternatives: Annotated[int, Field(ge=0, description="Other translations to return.")] = 0


class DocumentQuestion(Question):
    """A document, which is answered paragraph by paragraph."""

    q: Text
    source: Annotated[str, Field(description="Code of a language, or auto.", examples=["en"])]
    target: Code


Asked = TypeVar("Asked", bound=Question)


async def read_question(
    request: Request, kind: type[Asked], limits: Limits, most_characters: int
) -> Asked:
    """Reads JSON or a form; refuses what is too large, too slow, broken or of a wrong type."""
    body = await _read_body(request, limits.body_bytes(most_characters), limits.upload_s)
    media = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if media == "application/x-www-form-urlencoded":
        is_large = len(body) > LARGE_BYTES  # a megabyte takes 0.2 s
        fields = await asyncio.to_thread(_form_fields, body) if is_large else _form_fields(body)
        question = _checked(kind, fields, is_strict=False)
    elif media == "multipart/form-data":
        question = _checked(kind, await _multipart_fields(request, body), is_strict=False)
    elif media in ("", "application/json", "text/plain"):
        question = _checked(kind, _json_fields(body), is_strict=True)
    else:
        raise RefusedError(415, "Send JSON or a form, and name its media type.")
    characters = sum(max(1, len(text)) for text in question.texts)
    if characters > most_characters:
        raise RefusedError(
            413,
            f"q has {characters:,} characters, and a request may have {most_characters:,}; "
            "send it in parts.",
        )
    return question


async def _read_body(request: Request, most_bytes: int, seconds: float) -> bytes:
    too_large = RefusedError(
        413, f"The request is larger than {most_bytes:,} bytes; send its text in parts."
    )
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or int(declared) > most_bytes:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most_bytes:
                    raise too_large
    except TimeoutError:
        raise RefusedError(
            408, f"The request did not arrive within {seconds:g} seconds; send it again."
        ) from None
    return bytes(body)


def _json_fields(body: bytes) -> dict[str, Any]:
    try:
        fields = from_json(body, allow_inf_nan=False)
    except ValueError:
        raise RefusedError(400, "The request is not JSON in UTF-8.") from None
    if not isinstance(fields, dict):
        raise RefusedError(400, "The request should be a JSON object.")
    return fields


def _form_fields(body: bytes) -> dict[str, Any]:
    try:
        found = parse_qs(
            body.decode(), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS
        )
    except ValueError:
        raise RefusedError(400, "The request is not a form in UTF-8.") from None
    return {name: values if len(values) > 1 else values[0] for name, values in found.items()}


async def _multipart_fields(request: Request, body: bytes) -> dict[str, Any]:
    async def chunks() -> AsyncGenerator[bytes, None]:
        yield body

    _, parameters = parse_options_header(request.headers["content-type"])
    # Others are slow, or decode to halves of surrogate pairs, which no answer can repeat.
    if parameters.get(b"charset", b"utf-8").lower() not in (b"utf-8", b"utf8"):
        raise RefusedError(400, "The request is not a form in UTF-8.")
    try:
        body.decode()
        parser = MultiPartParser(
            request.headers,
            chunks(),
            max_files=0,
            max_fields=MOST_FIELDS,
            max_part_size=len(body),
        )
        form = await parser.parse()
    except (ValueError, MultiPartException):
        raise RefusedError(400, "The request is not a form in UTF-8 without files.") from None
    found: dict[str, Any] = {}
    for name, value in form.multi_items():
        found.setdefault(name, []).append(value)
    return {name: values if len(values) > 1 else values[0] for name, values in found.items()}


def _checked(kind: type[Asked], fields: dict[str, Any], is_strict: bool) -> Asked:
    try:
        return kind.model_validate(fields, strict=is_strict)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        name = str(first["loc"][0])
        if first["type"] == "missing":
            raise RefusedError(400, f"{name} is missing; it {SHOULD_BE[name]}.") from None
        raise RefusedError(400, f"{name} {SHOULD_BE[name]}.") from None
