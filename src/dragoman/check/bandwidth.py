"""One direction between two hosts over TCP: what one connection carries, what several carry, and
how long a small message takes there and back.

The receiver listens on one address, accepts only connections that present the secret of this
measurement, and stops listening once it has them. It times what arrives and says when it has seen
enough; the sender then discards what it has not sent yet. Every wait has the same deadline.
"""

import hmac
import os
import selectors
import socket
import struct
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, suppress
from typing import Any, NamedTuple

from dragoman.errors import RunError

SEVERAL_FLOWS = 4
"""As many connections as NCCL opens to a peer on some networks; a limit per connection, or a window
that is too small, shows at two already."""
PINGS = 25
CONNECT_S = 4.0
"""Until all connections are made: far above any round trip, and below a user's patience with a
firewall that drops packets."""
DEADLINE_S = 8.0
"""Of a whole measurement; on links of 1 Mbit/s and more it takes three seconds at most."""
WARM_UP_S = 0.2
WARM_UP_SHARE = 1 / 3
"""Discarded of each flow, whichever is longer: slow start, the packets it loses in a full queue and
sends again, and the burst that a token bucket lets pass at first. Chosen on 72 recorded transfers
of a lab (queues of 50 ms, 10 Mbit/s to 1 Gbit/s) with five times as many busy processes as cores:
replayed, 71 come out within 5 % of what the rate allows, the other one 5.8 % below."""
LEAST_S = 0.6
"""Of a flow, its warm-up included."""
MOST_S = 1.4
SETTLED = 0.04
"""Two halves of a measurement that differ by less agree; otherwise it goes on until MOST_S."""
LOOK_EVERY_S = 0.02
SECRET_BYTES = 64
BLOCK_BYTES = 1 << 18
"""Handed to the kernel at once; with less, Python would be slower than 10 Gbit/s."""
MOST_READS = 64
"""In a row from one connection; on a link that is faster than this program it would never end."""
MOST_STRANGERS = 64

_START, _STOP = b"s", b"e"
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER of 0 s: closing discards what was not sent, so that it does not disturb whoever
measures next."""


class Arrival(NamedTuple):
    at: float
    """On the receiver's clock."""
    total_bytes: int
    """Received until then, over all connections."""


class Received(NamedTuple):
    one_flow_bytes_per_s: float
    several_flows_bytes_per_s: float
    """As one flow where several were not asked for."""


def rate_of(arrivals: Sequence[Arrival]) -> float | None:
    """Returns the bytes per second after the warm-up; None if too little has arrived to tell.

    From one arrival to another: bytes before the first, and a wait behind the last, belong to what
    is not seen. So a stall by a lost packet at either end makes no difference. Where two halves do
    not agree the second one counts: the first has a start that took longer, or got at once what
    had waited for a lost packet.
    """
    if (halves := _halves(arrivals)) is None:
        kept = _after_warm_up(arrivals)
        return _plain_rate(kept) or None if len(kept) > 1 else None
    first, second, both = halves
    return both if min(first, second) >= (1 - SETTLED) * max(first, second) else second


def is_settled(arrivals: Sequence[Arrival]) -> bool:
    """Returns whether both halves of what has arrived after the warm-up have the same rate."""
    if not arrivals or arrivals[-1].at - arrivals[0].at < LEAST_S:
        return False
    if (halves := _halves(arrivals)) is None:
        return False
    first, second, _ = halves
    return min(first, second) >= (1 - SETTLED) * max(first, second) > 0


def _halves(arrivals: Sequence[Arrival]) -> tuple[float, float, float] | None:
    """Returns the rates of both halves and of the whole; None of too few arrivals."""
    kept = _after_warm_up(arrivals)
    if len(kept) < 8:
        return None
    middle_at = (kept[0].at + kept[-1].at) / 2
    middle = next(i for i, arrival in enumerate(kept) if arrival.at >= middle_at)
    second = _plain_rate(kept[middle:])
    return _plain_rate(kept[: middle + 1]), second or _plain_rate(kept), _plain_rate(kept)


def _plain_rate(arrivals: Sequence[Arrival]) -> float:
    first, last = arrivals[0], arrivals[-1]
    passed_s = last.at - first.at
    return (last.total_bytes - first.total_bytes) / passed_s if passed_s > 0 else 0.0


def _after_warm_up(arrivals: Sequence[Arrival]) -> Sequence[Arrival]:
    if not arrivals:
        return ()
    passed_s = arrivals[-1].at - arrivals[0].at
    begin_at = arrivals[0].at + max(WARM_UP_S, WARM_UP_SHARE * passed_s)
    first = next((i for i, arrival in enumerate(arrivals) if arrival.at >= begin_at), None)
    return arrivals[first:] if first is not None else ()


def receive(
    address: str, secret: str, several: int = SEVERAL_FLOWS
) -> Generator[int, None, Received]:
    """Yields the port to send to, then measures; returns the rates."""
    deadline = time.monotonic() + DEADLINE_S
    with ExitStack() as stack:
        try:
            listening = stack.enter_context(socket.create_server((address, 0), backlog=16))
        except OSError as error:
            raise RunError(
                f"may not listen on {address}: {error.strerror or error}; training needs ports "
                "there, so let its user open some"
            ) from error
        yield listening.getsockname()[1]
        flows = _accepted(listening, secret, 1 + several, time.monotonic() + CONNECT_S)
        for flow in flows:
            stack.enter_context(flow)
        listening.close()
        _echo(flows[0], deadline)
        one = _measured(flows[:1], deadline)
        return Received(one, _measured(flows[1:], deadline) if several else one)


def send(own: str, address: str, port: int, secret: str, several: int = SEVERAL_FLOWS) -> float:
    """Sends what `receive` measures, from the address `own`; returns the median round trip."""
    deadline = time.monotonic() + DEADLINE_S
    with ExitStack() as stack:
        flows = []
        for number in range(1 + several):
            try:
                flow = socket.create_connection((address, port), CONNECT_S, (own, 0))
            except OSError as error:
                raise RunError(
                    f"cannot connect to {address}: {error.strerror or 'no answer'}"
                ) from error
            flows.append(stack.enter_context(flow))
            flow.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            flow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            flow.sendall(secret.encode() + bytes([number]))
        try:
            round_trip_s = _ping(flows[0], deadline)
            _stream(flows[:1], deadline)
            if several:
                _stream(flows[1:], deadline)
        except OSError as error:
            raise RunError(
                f"its connection to {address} broke: {error.strerror or 'no answer'}"
            ) from error
    return round_trip_s


def _accepted(
    listening: socket.socket, secret: str, count: int, deadline: float
) -> list[socket.socket]:
    """Returns the connections that present the secret, in their order; all others are closed."""
    flows: dict[int, socket.socket] = {}
    strangers: dict[socket.socket, bytes] = {}
    listening.setblocking(False)
    with selectors.DefaultSelector() as selector:
        selector.register(listening, selectors.EVENT_READ)
        try:
            while len(flows) < count:
                _check_patience(listening, deadline)
                for key, _ in selector.select(LOOK_EVERY_S):
                    connection: Any = key.fileobj
                    if connection is listening:
                        stranger, _ = listening.accept()
                        stranger.setblocking(False)
                        if len(strangers) >= MOST_STRANGERS:
                            stranger.close()
                            continue
                        strangers[stranger] = b""
                        selector.register(stranger, selectors.EVENT_READ)
                        continue
                    said = _said(connection, SECRET_BYTES + 1 - len(strangers[connection]))
                    strangers[connection] += said or b""
                    words = strangers[connection]
                    if said and len(words) <= SECRET_BYTES:
                        continue
                    selector.unregister(connection)
                    del strangers[connection]
                    is_known = hmac.compare_digest(words[:SECRET_BYTES], secret.encode())
                    number = words[-1] if is_known and len(words) > SECRET_BYTES else count
                    if number < count and number not in flows:
                        flows[number] = connection
                    else:
                        connection.close()
        except BaseException:
            for flow in flows.values():
                flow.close()
            raise
        finally:
            for stranger in strangers:
                stranger.close()
    return [flows[number] for number in range(count)]


def _check_patience(listening: socket.socket, deadline: float) -> None:
    if time.monotonic() > deadline:
        where = listening.getsockname()[0]
        raise RunError(f"nobody has connected to {where} within {CONNECT_S:.0f} s")


def _said(connection: socket.socket, most_bytes: int) -> bytes | None:
    """Returns what has arrived; None if the connection has ended."""
    try:
        return connection.recv(most_bytes) or None
    except OSError:
        return None


def _echo(flow: socket.socket, deadline: float) -> None:
    flow.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(PINGS):
        flow.settimeout(_left(deadline))
        try:
            if not (ping := flow.recv(1)):
                raise RunError("the sender has ended before it sent anything")
            flow.sendall(ping)
        except OSError as error:
            raise RunError(f"the sender fell silent: {error.strerror or 'no answer'}") from error


def _ping(flow: socket.socket, deadline: float) -> float:
    """Returns what the way itself takes: the shortest trip, since a busy processor only adds."""
    trips_s = []
    for _ in range(PINGS):
        flow.settimeout(_left(deadline))
        begun = time.perf_counter()
        flow.sendall(b"p")
        if not flow.recv(1):
            raise ConnectionResetError(0, "the receiver has closed it")
        trips_s.append(time.perf_counter() - begun)
    return min(trips_s)


def _measured(flows: Sequence[socket.socket], deadline: float) -> float:
    """Lets the sender start, returns the rate, and lets it stop."""
    arrivals: list[Arrival] = []
    total, look_at = 0, 0.0
    buffer = bytearray(4 * BLOCK_BYTES)
    with selectors.DefaultSelector() as selector:
        for flow in flows:
            flow.setblocking(False)
            selector.register(flow, selectors.EVENT_READ)
            flow.send(_START)
        while time.monotonic() < deadline:
            ready: list[Any] = [key.fileobj for key, _ in selector.select(LOOK_EVERY_S)]
            total += sum(_drained(flow, buffer) for flow in ready)
            if ready:
                arrivals.append(Arrival(time.monotonic(), total))
            now = time.monotonic()
            if arrivals and now > look_at:
                look_at = now + LOOK_EVERY_S
                if is_settled(arrivals) or now - arrivals[0].at > MOST_S:
                    break
    for flow in flows:
        with suppress(OSError):
            flow.send(_STOP)
            flow.close()
    if (rate := rate_of(arrivals)) is None:
        raise RunError(f"no more than {total:,} bytes have arrived within {DEADLINE_S:.0f} s")
    return rate


def _drained(flow: socket.socket, buffer: bytearray) -> int:
    """Returns the bytes that have arrived. All of them: what a receiver that was held up leaves in
    the kernel would be counted as if it had arrived later, and flatter the link."""
    total = 0
    for _ in range(MOST_READS):
        try:
            count = flow.recv_into(buffer)
        except BlockingIOError:
            break
        except OSError as error:
            raise RunError(f"the sender broke off: {error.strerror}") from error
        if not count:
            raise RunError("the sender ended too early")
        total += count
    return total


def _stream(flows: Sequence[socket.socket], deadline: float) -> None:
    """Sends on all flows from the receiver's first word to its next one."""
    for flow in flows:
        flow.settimeout(_left(deadline))
        if flow.recv(1) != _START:
            raise ConnectionResetError(0, "the receiver has closed it")
        flow.setblocking(False)
    block = memoryview(os.urandom(BLOCK_BYTES))  # nothing on the way can compress it
    with selectors.DefaultSelector() as selector:
        for flow in flows:
            selector.register(flow, selectors.EVENT_READ | selectors.EVENT_WRITE)
        while time.monotonic() < deadline:
            for key, ready in selector.select(LOOK_EVERY_S):
                flow: Any = key.fileobj  # type: ignore[no-redef]
                try:
                    is_over = bool(ready & selectors.EVENT_READ)  # to stop, or closed
                    if not is_over:
                        flow.send(block)
                except BlockingIOError:
                    continue
                except ConnectionError:  # closed just now
                    is_over = True
                if is_over:
                    for each in flows:
                        each.close()
                    return
    raise TimeoutError(0, "the receiver did not stop it")


def _left(deadline: float) -> float:
    return max(0.001, deadline - time.monotonic())
