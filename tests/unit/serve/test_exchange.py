import asyncio

import pytest
from starlette.requests import ClientDisconnect, Request

from dragoman.serve.exchange import CLIENT_GONE, Exchange, unless_gone
from dragoman.serve.security import HEADERS


class Counted:
    def __init__(self):
        self.requests = []

    def count_request(self, route, status, seconds):
        assert seconds >= 0
        self.requests.append((route, status))


def exchanged(app, path="/known", is_logged=False):
    """What was sent, and what was counted."""
    metrics, sent = Counted(), []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "http.disconnect"}

    scope = {"type": "http", "method": "GET", "path": path, "client": ("127.0.0.1", 1)}
    asyncio.run(Exchange(app, {"/known"}, metrics, is_logged=is_logged)(scope, receive, send))
    return sent, metrics.requests


async def answers(scope, receive, send):
    headers = [(b"content-security-policy", b"mine")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def test_every_answer_has_the_headers_and_may_have_its_own():
    sent, counted = exchanged(answers)
    headers = dict(sent[0]["headers"])
    assert headers.keys() >= {name.encode() for name in HEADERS}
    assert headers[b"content-security-policy"] == b"mine"
    assert counted == [("/known", 200)]


def test_paths_that_are_not_known_are_counted_together():
    assert exchanged(answers, "/../etc/passwd")[1] == [("other", 200)]


def test_a_client_that_is_gone_and_an_error_are_counted_and_go_no_further(caplog):
    async def gone(scope, receive, send):
        raise ClientDisconnect

    async def fails(scope, receive, send):
        raise RuntimeError("why")

    assert exchanged(gone) == ([], [("/known", CLIENT_GONE)])
    assert caplog.text == ""
    assert exchanged(fails) == ([], [("/known", 500)])
    assert "why" in caplog.text


def test_a_request_that_outlasts_the_server_is_one_line_of_the_log(caplog):
    async def cancelled(scope, receive, send):
        raise asyncio.CancelledError

    assert exchanged(cancelled) == ([], [("/known", 500)])
    (record,) = caplog.records
    assert "/known" in record.getMessage()
    assert record.exc_info is None


def test_a_line_of_the_log_stays_a_line(caplog):
    caplog.set_level("INFO", "dragoman.serve")
    exchanged(answers, "/a\nforged 200 ok" + "x" * 1000, is_logged=True)
    (record,) = caplog.records
    assert "\n" not in record.getMessage()
    assert len(record.getMessage()) < 200


def test_work_is_cancelled_when_its_client_disappears():
    ended = []

    async def scenario():
        disappears = asyncio.Event()

        async def receive():
            await disappears.wait()
            return {"type": "http.disconnect"}

        async def work():
            try:
                await asyncio.sleep(60)
            finally:
                ended.append(True)

        async def quick():
            return 5

        request = Request({"type": "http"}, receive)
        assert await unless_gone(request, quick()) == 5
        waiting = asyncio.ensure_future(unless_gone(request, work()))
        await asyncio.sleep(0)
        disappears.set()
        with pytest.raises(ClientDisconnect):
            await waiting
        await asyncio.sleep(0)

    asyncio.run(scenario())
    assert ended == [True]
