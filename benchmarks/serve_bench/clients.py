"""Clients that ask one question after the other, each on a connection of its own."""

import asyncio
import json
import time
from collections.abc import Sequence
from typing import NamedTuple


class Load(NamedTuple):
    requests: int
    seconds: float
    latencies_s: list[float]

    @property
    def per_s(self) -> float:
        return self.requests / self.seconds

    def percentile_ms(self, percent: float) -> float:
        ordered = sorted(self.latencies_s)
        return 1000 * ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def load(port: int, sentences: Sequence[str], clients: int, requests: int) -> Load:
    """Sends so many requests in all, from so many clients; all must be answered with 200."""
    return asyncio.run(_load(port, sentences, clients, requests))


async def _load(port: int, sentences: Sequence[str], clients: int, requests: int) -> Load:
    bodies = [
        json.dumps({"q": each, "source": "en", "target": "de"}, ensure_ascii=False).encode()
        for each in sentences
    ]
    numbers = iter(range(requests))
    latencies: list[float] = []

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in numbers:
            body = bodies[number % len(bodies)]
            head = (
                "POST /translate HTTP/1.1\r\nhost: 127.0.0.1\r\n"
                f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
            )
            begun = time.perf_counter()
            writer.write(head.encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            if not answer.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(answer.decode(errors="replace"))
            length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            latencies.append(time.perf_counter() - begun)
        writer.close()
        await writer.wait_closed()

    begun = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return Load(len(latencies), time.perf_counter() - begun, latencies)
