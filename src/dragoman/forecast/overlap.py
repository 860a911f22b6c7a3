"""Computing and communication beside each other: a small discrete-event simulation. Pure.

One processor computes, one link carries messages in the order in which they were handed over.
Where both need the same cores, as with gloo on a CPU, a message that is on its way slows computing
down, and is slowed down itself where it needs more than half of them.
"""

from collections import deque
from typing import NamedTuple

FAIR_SHARE = 0.5
"""Of the cores, which the operating system leaves to each of two threads that both want all."""


class Message(NamedTuple):
    alone_s: float
    """From its turn to its end, while nothing is computed beside it."""
    processor_s: float = 0.0
    """Of these, what the cores that compute are busy with it; 0: others do that work."""


class Timeline:
    """Has a clock that only moves forward, and the messages that have not arrived yet."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.exposed_s = 0.0
        """Waited for messages, so far."""
        self.slowed_s = 0.0
        """By which computing has taken longer than alone, so far."""
        self._sent = 0
        self._arrived = 0
        self._on_their_way: deque[tuple[Message, float]] = deque()

    def send(self, message: Message) -> int:
        """Hands a message over; returns its number."""
        self._on_their_way.append((message, message.alone_s))
        self._sent += 1
        return self._sent

    def compute(self, seconds: float) -> None:
        """Computes for so long, as far as messages leave the cores alone."""
        left_s = seconds
        begun_s, is_slowed = self.now_s, False
        while left_s > 0:
            if not self._on_their_way:
                self.now_s += left_s
                break
            message, alone_s = self._on_their_way[0]
            share = message.processor_s / message.alone_s if message.alone_s else 0.0
            is_slowed = is_slowed or share > 0
            message_speed = min(1.0, FAIR_SHARE / share) if share else 1.0
            computing_speed = 1.0 - min(share, FAIR_SHARE)
            passed_s = min(alone_s / message_speed, left_s / computing_speed)
            self._pass(passed_s, message_speed)
            left_s -= passed_s * computing_speed
            if left_s < 1e-12 * seconds:
                break
        if is_slowed:
            self.slowed_s += max(0.0, self.now_s - begun_s - seconds)

    def wait(self, number: int | None = None) -> None:
        """Waits until this message has arrived; None: until all have."""
        until = self._sent if number is None else number
        while self._arrived < until:
            alone_s = self._on_their_way[0][1]
            self.exposed_s += alone_s
            self._pass(alone_s, 1.0)

    def _pass(self, seconds: float, message_speed: float) -> None:
        self.now_s += seconds
        message, alone_s = self._on_their_way[0]
        alone_s -= seconds * message_speed
        if alone_s <= 1e-12 * message.alone_s:
            self._on_their_way.popleft()
            self._arrived += 1
        else:
            self._on_their_way[0] = message, alone_s
