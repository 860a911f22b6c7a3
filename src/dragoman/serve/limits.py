"""What requests may ask for, and the answers to those that ask for more."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

BYTES_PER_CHARACTER = 12
"""At most: a character beyond the basic plane as two JSON escapes, or percent-encoded in a form."""
OTHER_FIELDS_BYTES = 16_384
LONGEST_WAIT_S = 60


@dataclass(frozen=True)
class Limits:
    characters: int = 20_000
    """Of one request; a text of a list counts as at least one."""
    document_characters: int = 1_000_000
    """Of one document that is streamed."""
    alternatives: int = 10
    queue_characters: int = 200_000
    """Of all sentences that wait; a request that finds the queue empty is taken in any case."""
    requests: int = 500
    """That are worked on at the same time."""
    client_requests: int = 100
    """Of these, from one address."""
    seconds: float = 60.0
    """For one request; for one paragraph of a document that is streamed."""
    upload_s: float = 20.0
    """For a client to send the head of a request, and again for its body."""

    def body_bytes(self, characters: int) -> int:
        """Returns the size of the largest body that can hold as many characters."""
        return BYTES_PER_CHARACTER * characters + OTHER_FIELDS_BYTES


class RefusedError(Exception):
    """A request is answered with a status and one sentence."""

    def __init__(self, status: int, sentence: str, retry_after_s: int | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.retry_after_s = status, sentence, retry_after_s


class Admission:
    """Counts the requests that are being worked on, all of them and those of each client."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._of_client: Counter[str] = Counter()

    @property
    def running(self) -> int:
        return self._of_client.total()

    @contextmanager
    def admitted(self, client: str) -> Iterator[None]:
        """Takes a place while it is open; refuses whoever finds none."""
        limits = self._limits
        if self._of_client[client] >= limits.client_requests:
            raise RefusedError(
                429,
                f"{limits.client_requests} requests of yours are being worked on; wait for one.",
                1,
            )
        if self.running >= limits.requests:
            raise RefusedError(503, "The server works on as many requests as it may; try later.", 1)
        self._of_client[client] += 1
        try:
            yield
        finally:
            self._of_client[client] -= 1
            if not self._of_client[client]:
                del self._of_client[client]


def seconds_until_free(characters: int, characters_per_s: float) -> int:
    """Returns for how long to send a client away while so many characters wait."""
    if characters_per_s <= 0:
        return 1
    return max(1, min(LONGEST_WAIT_S, round(characters / characters_per_s)))
