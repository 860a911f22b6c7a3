import asyncio

import pytest
from starlette.requests import Request

from dragoman.serve.limits import Limits, RefusedError
from dragoman.serve.requests import DetectQuestion, TranslateQuestion, read_question


def read(*chunks, kind=DetectQuestion, limits=None, media="application/json", headers=(), wait_s=0):
    """Reads a question from chunks of a body, the last of which comes after some time."""
    remaining = [*chunks]

    async def receive():
        chunk = remaining.pop(0)
        if not remaining:
            await asyncio.sleep(wait_s)
        return {"type": "http.request", "body": chunk, "more_body": bool(remaining)}

    scope = {"type": "http", "headers": [(b"content-type", media.encode()), *headers]}
    limits = limits or Limits()
    return asyncio.run(read_question(Request(scope, receive), kind, limits, limits.characters))


def status(*chunks, **how):
    with pytest.raises(RefusedError) as refused:
        read(*chunks, **how)
    return refused.value.status


def test_a_body_may_come_in_pieces():
    assert read(b'{"q": ', b'"a"', b"}").q == "a"


def test_a_repeated_field_of_a_form_is_a_list():
    form = b"q=One.&q=Two.&source=en&target=de&alternatives=2"
    question = read(form, kind=TranslateQuestion, media="application/x-www-form-urlencoded")
    assert question.texts == ["One.", "Two."]
    assert question.alternatives == 2


def test_json_is_taken_at_its_word():
    body = b'{"q": "a", "source": "en", "target": "de", "alternatives": %s}'
    for wrong in (b'"2"', b"2.5", b"true", b"null"):
        assert status(body % wrong, kind=TranslateQuestion) == 400
    assert read(body % b"2", kind=TranslateQuestion).alternatives == 2


def test_a_body_that_does_not_end_is_not_read_to_its_end():
    limits = Limits(characters=10)
    endless = [b"x" * 10_000] * 100
    assert status(*endless, limits=limits) == 413
    declared = [(b"content-length", b"999999999")]
    assert status(b"", limits=limits, headers=declared) == 413
    assert status(b"", limits=limits, headers=[(b"content-length", b"many")]) == 413


def test_a_body_that_comes_too_slowly_is_given_up():
    assert status(b"{", b"}", limits=Limits(upload_s=0.01), wait_s=60) == 408
