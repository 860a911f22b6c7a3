import asyncio
import json

import pytest

from dragoman.watch import broadcast as module
from dragoman.watch.broadcast import Broadcast


def message_of(event: str):
    """Kind and data of an event."""
    fields = dict(line.split(": ", 1) for line in event.strip().split("\n"))
    return fields["event"], json.loads(fields["data"])


async def begun(broadcast):
    events = broadcast.events()
    assert (await anext(events)).startswith("retry: ")
    return events


def test_a_client_gets_everything_first_and_then_what_changed():
    async def play():
        broadcast = Broadcast()
        broadcast.publish([{"a": "1", "b": "1"}, {"a": "x"}])
        events = await begun(broadcast)
        first = message_of(await anext(events))
        broadcast.publish([{"a": "1", "b": "2"}, {"a": "x"}])
        second = message_of(await anext(events))
        await events.aclose()
        return first, second

    (kind, whole), (_, changed) = asyncio.run(play())

    assert kind == "parts"
    assert whole["runs"] == [
        {"order": ["a", "b"], "parts": {"a": "1", "b": "1"}},
        {"order": ["a"], "parts": {"a": "x"}},
    ]
    assert changed["runs"] == [
        {"order": ["a", "b"], "parts": {"b": "2"}},
        {"order": ["a"], "parts": {}},
    ]


def test_a_slow_client_skips_what_was_between_and_a_new_one_gets_everything():
    async def play():
        broadcast = Broadcast()
        broadcast.publish([{"a": "0"}])
        slow = await begun(broadcast)
        await anext(slow)
        for number in range(100):
            broadcast.publish([{"a": str(number)}])
        _, caught_up = message_of(await anext(slow))
        new = await begun(broadcast)
        _, whole = message_of(await anext(new))
        await slow.aclose()
        await new.aclose()
        return caught_up["runs"], whole["runs"]

    caught_up, whole = asyncio.run(play())
    assert caught_up == whole == [{"order": ["a"], "parts": {"a": "99"}}]


def test_parts_that_go_and_parts_in_another_order_are_told():
    async def play():
        broadcast = Broadcast()
        broadcast.publish([{"a": "1", "b": "1", "c": "1"}])
        events = await begun(broadcast)
        await anext(events)
        broadcast.publish([{"c": "1", "a": "1"}])
        _, changed = message_of(await anext(events))
        await events.aclose()
        return changed["runs"]

    assert asyncio.run(play()) == [{"order": ["c", "a"], "parts": {}}]


def test_while_nothing_changes_a_beat_is_sent(monkeypatch):
    monkeypatch.setattr(module, "BEAT_S", 0.001)

    async def play():
        broadcast = Broadcast()
        broadcast.publish([{"a": "1"}])
        events = await begun(broadcast)
        await anext(events)
        broadcast.publish([{"a": "1"}])
        kind, _ = message_of(await anext(events))
        await events.aclose()
        return kind

    assert asyncio.run(play()) == "beat"


def test_clients_are_counted_and_closing_ends_their_streams():
    async def play():
        broadcast = Broadcast()
        broadcast.publish([{"a": "1"}])
        one, two = await begun(broadcast), await begun(broadcast)
        await anext(two)
        counts = [broadcast.clients]
        await one.aclose()
        counts.append(broadcast.clients)
        waiting = asyncio.ensure_future(anext(two))
        await asyncio.sleep(0)
        broadcast.close()
        with pytest.raises(StopAsyncIteration):
            await waiting
        return [*counts, broadcast.clients]

    assert asyncio.run(play()) == [2, 1, 0]
