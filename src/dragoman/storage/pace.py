"""A limit on bytes per second that several uploads share."""

import threading
import time
from collections.abc import Callable


class Pace:
    """Lets through so many bytes a second on average, from whichever threads they come."""

    def __init__(
        self,
        bytes_per_s: float,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """0 bytes a second: no limit."""
        self._bytes_per_s, self._clock, self._pause = bytes_per_s, clock, pause
        self._lock = threading.Lock()
        self._free_at = 0.0

    @property
    def is_limited(self) -> bool:
        return self._bytes_per_s > 0

    def take(self, size: int) -> float:
        """Waits until all that was taken before had its time; returns the seconds waited."""
        if not self.is_limited:
            return 0.0
        with self._lock:
            now = self._clock()
            begin = max(now, self._free_at)
            self._free_at = begin + size / self._bytes_per_s
        if begin > now:
            self._pause(begin - now)
        return begin - now
