import asyncio
import gc
import json

import pytest
from starlette.requests import ClientDisconnect
from unit.serve.served import fake_model

from dragoman.serve.batching import Batcher
from dragoman.serve.models import Pair
from dragoman.serve.streaming import PARAGRAPHS_AHEAD, send_paragraphs, translated_lines


def played(scenario, most_characters=100_000):
    async def play():
        batcher = Batcher(1, most_characters)
        model = fake_model(Pair("en", "de"))
        try:
            return await scenario(batcher, model)
        finally:
            model.translator.released.set()
            batcher.close()

    return asyncio.run(play())


def test_lines_come_in_order_and_no_more_than_a_few_are_queued():
    most = 0

    async def scenario(batcher, model):
        nonlocal most
        found = []
        async for line in translated_lines(batcher, model, "\n".join("abcdefghijklmnop"), 30):
            most = max(most, batcher.waiting_sentences)
            found.append(line)
        return found

    assert played(scenario) == [f"de:{letter}" for letter in "abcdefghijklmnop"]
    assert most <= PARAGRAPHS_AHEAD


def test_a_document_waits_while_the_queue_is_full():
    async def scenario(batcher, model):
        model.translator.hold()
        busy = asyncio.ensure_future(batcher.translate(model, ["busy"]))
        await asyncio.to_thread(model.translator.entered.wait, 30)
        waiting = asyncio.ensure_future(batcher.translate(model, ["x" * 20]))
        await asyncio.sleep(0)
        lines = translated_lines(batcher, model, "One.", 30)
        first = asyncio.ensure_future(anext(lines))
        await asyncio.sleep(0.01)
        model.translator.released.set()
        assert await first == "de:One."
        await lines.aclose()
        await asyncio.gather(busy, waiting)

    played(scenario, most_characters=10)


def test_a_paragraph_that_takes_too_long_ends_the_document_with_a_sentence():
    async def scenario(batcher, model):
        sent = []

        async def send(message):
            sent.append(message)

        model.translator.hold()
        await send_paragraphs(batcher, model, "One.", 0.01, send)
        return sent

    start, line, end = played(scenario)
    assert start["status"] == 200
    assert json.loads(line["body"])["error"].endswith(".")
    assert not end.get("more_body")


def test_an_error_is_reported_once_however_many_paragraphs_have_it(caplog):
    async def scenario(batcher, model):
        sent = []

        async def send(message):
            sent.append(message)

        text = "\n".join(["poison"] * 2 * PARAGRAPHS_AHEAD)
        await send_paragraphs(batcher, model, text, 30, send)
        return sent

    _, line, _ = played(scenario)
    gc.collect()
    assert "error" in json.loads(line["body"])
    assert len(caplog.records) == 1


def test_who_does_not_read_counts_as_gone_and_frees_its_place():
    async def scenario(batcher, model):
        async def send(message):
            if message["type"] == "http.response.body":
                await asyncio.sleep(60)

        with pytest.raises(ClientDisconnect):
            await send_paragraphs(batcher, model, "One.\nTwo.\nThree.", 0.01, send)
        await asyncio.sleep(0)
        assert batcher.waiting_sentences == 0

    played(scenario)
