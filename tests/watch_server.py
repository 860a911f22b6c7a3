"""The page of `dragoman watch --web`, served by a thread of this process."""

import asyncio
import threading
from collections.abc import Sequence

from dragoman.serve.server import address_of, bind, run
from dragoman.watch.app import Watch, create_app, refresh_forever
from dragoman.watch.broadcast import Broadcast


class WatchServer:
    """Runs until it is stopped; the watches are the caller's."""

    def __init__(self, watches: Sequence[Watch], port: int = 0) -> None:
        self.broadcast = Broadcast()
        self._watches = watches
        self._bound = bind("127.0.0.1", port)
        self.port = self._bound.getsockname()[1]
        self.address = address_of(self._bound)
        self._has_begun, self._stopping = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        self._has_begun.wait()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
        self._bound.close()

    def _run(self) -> None:
        run(
            create_app(self.broadcast),
            self._bound,
            self._beside,
            request_s=0.0,
            upload_s=20.0,
            closing=self.broadcast.close,
        )

    async def _beside(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._has_begun.set()
        refreshing = asyncio.ensure_future(refresh_forever(self._watches, self.broadcast))
        await self._stopping.wait()
        refreshing.cancel()

    def __enter__(self) -> "WatchServer":
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
