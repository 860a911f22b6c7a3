"""Parts of pages come in as they change, server-sent events for any number of clients go out.

Nothing is buffered for a client: each remembers which version of each part it has, and is sent the
newest of those that changed. Who reads slowly skips what was between.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from dragoman.watch.page import Parts

RETRY_MS = 1000
BEAT_S = 5.0


@dataclass(frozen=True)
class _Part:
    version: int
    html: str


class Broadcast:
    """What all pages show at the moment."""

    def __init__(self) -> None:
        self._runs: list[dict[str, _Part]] = []
        self._version = 0
        self._changed = asyncio.Event()
        self._is_closed = False
        self.clients = 0

    def publish(self, runs: Sequence[Parts]) -> None:
        """Takes the parts of all runs, each with all of its parts."""
        version = self._version + 1
        before = [*self._runs, *({} for _ in runs[len(self._runs) :])]
        after = [
            {
                name: known[name]
                if name in known and known[name].html == html
                else _Part(version, html)
                for name, html in parts.items()
            }
            for known, parts in zip(before, runs, strict=True)
        ]
        if [[*run] for run in after] != [[*run] for run in self._runs] or after != self._runs:
            self._runs, self._version = after, version
            self._wake()

    def close(self) -> None:
        """Ends the streams of all clients."""
        self._is_closed = True
        self._wake()

    async def events(self) -> AsyncGenerator[str, None]:
        """Yields for one client everything first, then what changes, and a beat now and then."""
        self.clients += 1
        try:
            yield f"retry: {RETRY_MS}\n\n"
            sent = 0
            while not self._is_closed:
                if self._version > sent:
                    message, sent = self._since(sent), self._version
                    yield f"event: parts\ndata: {message}\n\n"
                    continue
                changed = self._changed
                try:
                    await asyncio.wait_for(changed.wait(), BEAT_S)
                except TimeoutError:
                    yield "event: beat\ndata: {}\n\n"
        finally:
            self.clients -= 1

    def _since(self, version: int) -> str:
        """Returns the order of all parts of all runs, and the texts of those that are newer."""
        runs = [
            {
                "order": [*parts],
                "parts": {
                    name: part.html for name, part in parts.items() if part.version > version
                },
            }
            for parts in self._runs
        ]
        return json.dumps({"runs": runs}, separators=(",", ":"))

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
