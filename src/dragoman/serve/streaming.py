"""A long document, answered paragraph by paragraph: one line of JSON for each of its lines."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.requests import ClientDisconnect
from starlette.types import Message, Send

from dragoman.documents.candidates import json_line
from dragoman.serve.batching import Batcher
from dragoman.serve.limits import RefusedError
from dragoman.serve.models import Model
from dragoman.serve.translation import translate_texts

logger = logging.getLogger(__name__)

PARAGRAPHS_AHEAD = 8
"""That are queued at once: enough for a batch, and room for other clients."""
TRY_AGAIN_S = 0.2
CONTENT_TYPE = "application/x-ndjson"


async def send_paragraphs(
    batcher: Batcher, model: Model, text: str, seconds: float, send: Send
) -> None:
    """Sends {"translatedText": ...} for each line of a text, as soon as it is translated.

    Where that fails, the last line is {"error": ...}: the status was sent long before. Whoever
    does not read what was sent within `seconds` counts as gone.
    """

    async def send_in_time(message: Message) -> None:
        try:
            async with asyncio.timeout(seconds):
                await send(message)
        except TimeoutError:
            raise ClientDisconnect from None

    async def send_line(line: dict[str, str]) -> None:
        body = json_line(line).encode() + b"\n"
        await send_in_time({"type": "http.response.body", "body": body, "more_body": True})

    headers = [(b"content-type", CONTENT_TYPE.encode()), (b"cache-control", b"no-store")]
    await send_in_time({"type": "http.response.start", "status": 200, "headers": headers})
    try:
        async with aclosing(translated_lines(batcher, model, text, seconds)) as lines:
            async for line in lines:
                await send_line({"translatedText": line})
    except TimeoutError:
        await send_line({"error": f"A paragraph took more than {seconds:g} seconds; try later."})
    except ClientDisconnect:
        raise
    except Exception:
        logger.exception("a document failed")
        await send_line({"error": "The server failed at this paragraph; its log says why."})
    await send_in_time({"type": "http.response.body", "body": b""})


async def translated_lines(
    batcher: Batcher, model: Model, text: str, seconds: float
) -> AsyncGenerator[str, None]:
    """Yields the translation of each line in order; raises TimeoutError where one takes longer."""
    ahead: deque[asyncio.Task[str]] = deque()
    try:
        for line in text.split("\n"):
            ahead.append(asyncio.create_task(_translated(batcher, model, line)))
            if len(ahead) == PARAGRAPHS_AHEAD:
                async with asyncio.timeout(seconds):
                    translated = await ahead.popleft()
                yield translated
        while ahead:
            async with asyncio.timeout(seconds):
                translated = await ahead.popleft()
            yield translated
    finally:
        for task in ahead:
            task.cancel()
        # asyncio would report the errors of those that nobody has waited for.
        await asyncio.gather(*ahead, return_exceptions=True)


async def _translated(batcher: Batcher, model: Model, line: str) -> str:
    """Translates a line as soon as there is room in the queue: a document is not broken off."""
    while True:
        try:
            (translated,) = await translate_texts(batcher, model, [line])
        except RefusedError:
            await asyncio.sleep(TRY_AGAIN_S)
        else:
            return translated.text
