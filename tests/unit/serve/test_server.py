import asyncio
import socket

import pytest
import uvicorn

from dragoman.errors import UserError
from dragoman.serve.server import UNREAD_MS, address_of, bind, timed_protocol


def test_an_address_that_cannot_be_had_is_refused_by_name():
    with bind("127.0.0.1", 0) as bound:
        port = bound.getsockname()[1]
        assert address_of(bound) == f"http://127.0.0.1:{port}"
        with pytest.raises(UserError, match=str(port)):
            bind("127.0.0.1", port)
    with pytest.raises(UserError, match=r"no\.such\.host"):
        bind("no.such.host.invalid", 0)


@pytest.mark.parametrize(
    ("option", "is_good"),
    [("TCP_NODELAY", lambda value: value != 0), ("TCP_USER_TIMEOUT", UNREAD_MS.__eq__)],
)
def test_connections_neither_wait_for_acknowledgements_nor_for_who_never_reads(option, is_good):
    if not hasattr(socket, option):
        pytest.skip("Linux alone has it")

    async def option_of_a_connection():
        connected = asyncio.get_running_loop().create_future()

        class Protocol(asyncio.Protocol):
            def connection_made(self, transport):
                accepted = transport.get_extra_info("socket")
                connected.set_result(
                    accepted.getsockopt(socket.IPPROTO_TCP, getattr(socket, option))
                )
                transport.close()

        with bind("127.0.0.1", 0) as bound:
            server = await asyncio.get_running_loop().create_server(Protocol, sock=bound)
            _, writer = await asyncio.open_connection(*bound.getsockname())
            found = await connected
            writer.close()
            await writer.wait_closed()
            server.close()
        return found

    assert is_good(asyncio.run(option_of_a_connection()))


async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def answer_to(*pieces: bytes, head_s: float) -> bytes:
    """What is answered on one connection on which these pieces are sent, until it is closed."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        config = uvicorn.Config(
            app, http=timed_protocol(head_s), ws="none", lifespan="off", log_config=None
        )
        server = uvicorn.Server(config)
        serving = asyncio.ensure_future(server._serve([bound]))
        reader, writer = await asyncio.open_connection(*bound.getsockname())
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        server.should_exit = True
        await serving
    return answer


HEAD = b"GET / HTTP/1.1\r\nhost: x\r\n"
WHOLE = HEAD + b"\r\n"
LARGE = b"x" * 100_000


@pytest.mark.parametrize("pieces", [(), (HEAD,), (HEAD, b"a: b\r\n", b"c: d\r\n"), (WHOLE, HEAD)])
def test_who_does_not_end_the_head_of_a_request_is_sent_away(pieces):
    answer = asyncio.run(answer_to(*pieces, head_s=0.1))
    assert b"408" in answer
    assert (b"204" in answer) == (WHOLE in pieces)


def test_who_ends_it_in_time_is_answered():
    closing = HEAD + b"connection: close\r\n\r\n"
    assert b"204" in asyncio.run(answer_to(WHOLE, closing, head_s=30))


def test_who_does_not_end_a_request_that_is_answered_is_sent_away():
    pieces = (HEAD + b"content-length: 100\r\n\r\n", b"x", b"x")
    answer = asyncio.run(answer_to(*pieces, head_s=0.1))
    assert answer.count(b"HTTP/1.1") == 1
    assert b"204" in answer


@pytest.mark.parametrize(
    "pieces",
    [
        (HEAD, b"a: ", LARGE),
        (b"GET /", LARGE, LARGE),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n0\r\n", b"a: ", LARGE),
    ],
)
def test_a_head_without_end_is_refused(pieces):
    assert b"431" in asyncio.run(answer_to(*pieces, head_s=30))


def test_a_large_body_is_none_of_the_head():
    sized = HEAD + b"content-length: %d\r\n\r\n" % (5 * len(LARGE))
    chunk = b"%x\r\n%b\r\n" % (len(LARGE), LARGE)
    chunked = HEAD + b"transfer-encoding: chunked\r\n\r\n" + 5 * chunk + b"0\r\n\r\n"
    closing = HEAD + b"connection: close\r\n\r\n"
    answer = asyncio.run(answer_to(sized + 5 * LARGE, chunked, closing, head_s=30))
    assert answer.count(b"204") == 3
    assert b"431" not in answer
