import asyncio
import threading
from dataclasses import replace

import pytest
from unit.serve.served import fake_model

from dragoman.serve.batching import Batcher
from dragoman.serve.models import Pair
from dragoman.serve.translation import LONG_CHARACTERS, translate_texts


def translated(*arguments):
    async def play():
        batcher = Batcher(1, 1000)
        try:
            return await translate_texts(batcher, fake_model(Pair("en", "de")), *arguments)
        finally:
            batcher.close()

    return asyncio.run(play())


def test_texts_keep_their_layout():
    (found,) = translated(["- One. Two.\n\n  Three?\n---"])
    assert found == ("- de:One. de:Two.\n\n  de:Three?\n---", [])


def test_html_is_translated_between_its_tags():
    (found,) = translated(["<p>One. Two.</p> <b>3 &lt; 4</b>"], "html")
    assert found.text == "<p>de:One. de:Two.</p> <b>de:3 &lt; 4</b>"


def test_alternatives_combine_the_candidates_of_sentences_best_first():
    one, empty = translated(["One. Two.", ""], "text", 3)
    assert one.text == "de:One. de:Two."
    assert set(one.alternatives[:2]) == {"de1:One. de:Two.", "de:One. de1:Two."}
    assert len(one.alternatives) == 3
    assert empty == ("", [])


@pytest.mark.parametrize(
    ("texts", "is_aside"),
    [(["Short."], False), (["x" * LONG_CHARACTERS], True), (["x"] * LONG_CHARACTERS, True)],
)
def test_long_texts_do_not_hold_up_the_event_loop(texts, is_aside):
    threads = set()

    async def play():
        batcher, model = Batcher(1, 1000), fake_model(Pair("en", "de"))

        def take_apart(text):
            threads.add(threading.current_thread())
            return model.take_apart(text)

        try:
            return await translate_texts(batcher, replace(model, take_apart=take_apart), texts)
        finally:
            batcher.close()

    assert [found.text for found in asyncio.run(play())] == [f"de:{text}" for text in texts]
    assert (threading.main_thread() not in threads) == is_aside
