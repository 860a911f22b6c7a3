import asyncio
import socket

import pytest
import uvicorn

from dragoman.errors import UserError
from dragoman.serve.server import address_of, bind, timed_protocol


def test_an_address_that_cannot_be_had_is_refused_by_name():
    with bind("127.0.0.1", 0) as bound:
        port = bound.getsockname()[1]
        assert address_of(bound) == f"http://127.0.0.1:{port}"
        with pytest.raises(UserError, match=str(port)):
            bind("127.0.0.1", port)
    with pytest.raises(UserError, match=r"no\.such\.host"):
        bind("no.such.host.invalid", 0)


def test_small_answers_do_not_wait_for_acknowledgements():
    async def option_of_a_connection():
        connected = asyncio.get_running_loop().create_future()

        class Protocol(asyncio.Protocol):
            def connection_made(self, transport):
                accepted = transport.get_extra_info("socket")
                connected.set_result(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
                transport.close()

        with bind("127.0.0.1", 0) as bound:
            server = await asyncio.get_running_loop().create_server(Protocol, sock=bound)
            _, writer = await asyncio.open_connection(*bound.getsockname())
            option = await connected
            writer.close()
            await writer.wait_closed()
            server.close()
        return option

    assert asyncio.run(option_of_a_connection()) != 0


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


@pytest.mark.parametrize("pieces", [(), (HEAD,), (HEAD, b"a: b\r\n", b"c: d\r\n"), (WHOLE, HEAD)])
def test_who_does_not_end_the_head_of_a_request_is_sent_away(pieces):
    answer = asyncio.run(answer_to(*pieces, head_s=0.1))
    assert b"408" in answer
    assert (b"204" in answer) == (WHOLE in pieces)


def test_who_ends_it_in_time_is_answered():
    closing = HEAD + b"connection: close\r\n\r\n"
    assert b"204" in asyncio.run(answer_to(WHOLE, closing, head_s=30))
