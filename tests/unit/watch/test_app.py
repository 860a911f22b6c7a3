import asyncio
import gzip
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import plotly.offline
import pytest
from unit.watch.watched_values import FakeWatch, watched
from watch_server import WatchServer

from dragoman.watch import app as module
from dragoman.watch.app import create_app, own_names, show_in_browser
from dragoman.watch.broadcast import Broadcast


def answer_to(path, headers=None, client="127.0.0.1", host="127.0.0.1:1234", names=()):
    async def ask():
        app = create_app(Broadcast(), names)
        transport = httpx.ASGITransport(app, client=(client, 1))
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as asking:
            return await asking.get(path, headers=headers)

    return asyncio.run(ask())


def test_the_page_loads_only_what_the_server_has():
    page = answer_to("/")
    links = [part.split('"')[1] for part in page.text.split("<")[1:] if "src=" in part]
    links += [part.split('href="')[1].split('"')[0] for part in page.text.split("<link")[1:]]

    assert len(links) == 6
    for link in links:
        assert answer_to(f"/{link}").status_code == 200


@pytest.mark.parametrize("path", ["/", "/page.css", "/watch.js", "/nothing"])
def test_every_answer_has_a_strict_policy(path):
    headers = answer_to(path).headers
    policy = dict(
        part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";")
    )

    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff"


def test_the_plotting_library_is_packed_and_may_be_kept_for_good():
    name = module._plotly_name()
    packed = answer_to(f"/{name}", {"accept-encoding": "gzip"})
    plain = answer_to(f"/{name}", {"accept-encoding": "identity"})

    assert packed.headers["content-encoding"] == "gzip"
    assert packed.text == plain.text == plotly.offline.get_plotlyjs()
    assert "immutable" in packed.headers["cache-control"]
    assert len(module._packed_plotly()) < len(gzip.decompress(module._packed_plotly())) / 2


@pytest.mark.parametrize(
    ("client", "host", "names", "status"),
    [
        ("127.0.0.1", "localhost:1234", (), 200),
        ("127.0.0.1", "[::1]:1234", (), 200),
        ("127.0.0.1", "evil.example:1234", (), 403),
        ("192.168.1.5", "127.0.0.1:1234", (), 403),
        ("192.168.1.5", "192.168.1.7:1234", {"desk"}, 200),
        ("192.168.1.5", "[fe80::1]:1234", {"desk"}, 200),
        ("192.168.1.5", "Desk:1234", {"desk"}, 200),
        ("192.168.1.5", "1.2.3.4.evil.example", {"desk"}, 403),
        ("192.168.1.5", "evil.example:1234", {"desk"}, 403),
    ],
)
@pytest.mark.parametrize("path", ["/", "/page.js"])
def test_only_who_asks_by_a_name_of_this_machine_is_answered(client, host, names, status, path):
    assert answer_to(path, client=client, host=host, names=names).status_code == status


def test_a_question_for_the_headers_of_the_stream_is_answered_and_takes_no_place():
    async def ask():
        broadcast = Broadcast()
        transport = httpx.ASGITransport(create_app(broadcast), client=("127.0.0.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as asking:
            answer = await asyncio.wait_for(asking.head("/events"), 30)
        return answer, broadcast.clients

    answer, clients = asyncio.run(ask())
    assert (answer.status_code, clients) == (200, 0)
    assert answer.headers["content-type"].startswith("text/event-stream")


def test_the_name_that_was_typed_is_one_of_this_machine():
    """It may be another one than the machine knows itself by."""
    assert {"gpu.lab.example", socket.gethostname().lower()} <= own_names("GPU.lab.example")


def events_of(answer):
    for line in answer.iter_lines():
        if line.startswith("data: "):
            yield line


def test_streams_show_what_changes_free_their_place_and_end_with_the_server(monkeypatch):
    monkeypatch.setattr(module, "REFRESH_S", 0.01)
    watch = FakeWatch(watched())
    with (
        WatchServer([watch]) as server,
        httpx.Client(base_url=server.address, timeout=60) as client,
    ):
        broadcast = server.broadcast
        with client.stream("GET", "/events") as stream:
            events = events_of(stream)
            assert "of 1,000" in next(events)
            watch.shown = watched(step=777)
            assert "777" in next(events)
            assert broadcast.clients == 1
        while broadcast.clients:
            client.get("/watch.css")
        left_open = httpx.Client(base_url=server.address, timeout=60)
        open_stream = left_open.stream("GET", "/events")
        kept_events = events_of(open_stream.__enter__())
        assert next(kept_events)
    open_stream.__exit__(None, None, None)
    left_open.close()
    assert broadcast.clients == 0


def test_a_run_that_cannot_be_shown_is_said_and_the_server_stays_up(monkeypatch, caplog):
    monkeypatch.setattr(module, "REFRESH_S", 0.01)
    watch = FakeWatch(watched(name="first"))
    other = FakeWatch(watched(name="second"))
    with (
        WatchServer([watch, other]) as server,
        httpx.Client(base_url=server.address, timeout=60) as client,
        client.stream("GET", "/events") as stream,
    ):
        events = events_of(stream)
        assert "first" in next(events)
        watch.shown = RuntimeError("invented")
        assert "cannot be shown" in next(events)
        watch.shown = watched(name="back")
        assert "back" in next(events)
    assert "invented" in caplog.text
    assert len([record for record in caplog.records if record.exc_info]) == 1


def test_a_page_that_does_not_read_does_not_hold_up_the_end(caplog):
    much = watched(name="x" * 5_000_000)
    with WatchServer([FakeWatch(much)]) as server:
        client = socket.create_connection(("127.0.0.1", server.port))
        client.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        while not client.recv(2000).endswith(b"x" * 1000):
            pass
    client.close()
    assert caplog.records == []  # uvicorn logs what it has to cancel


def test_one_page_too_many_is_refused(monkeypatch):
    monkeypatch.setattr(module, "MOST_CLIENTS", 1)
    with (
        WatchServer([FakeWatch(watched())]) as server,
        httpx.Client(base_url=server.address, timeout=60) as client,
        client.stream("GET", "/events") as stream,
    ):
        events = events_of(stream)  # which would be closed with its last reference
        assert next(events)
        assert client.get("/events").status_code == 503


def test_a_signal_ends_the_server_although_a_page_is_open():
    """In a process of its own, as a user starts it."""
    program = (
        "import sys; from dragoman.watch import app; from dragoman.rundir import RunDir\n"
        "from dragoman.console import console_output\n"
        "sys.path += sys.argv[1:]\n"
        "from unit.watch.watched_values import FakeWatch, watched\n"
        "from pathlib import Path\n"
        "app.RunWatch = lambda run: FakeWatch(watched())\n"
        "with console_output(): app.serve([RunDir(Path('runs/a'))], open_browser=False)\n"
    )
    tests = Path(__file__).parents[2]
    command = [sys.executable, "-c", program, str(tests)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            address = process.stdout.readline().split()[-1]
            with (
                httpx.Client(base_url=address, timeout=60) as client,
                client.stream("GET", "/events") as stream,
            ):
                events = events_of(stream)
                assert next(events)
                process.send_signal(signal.SIGINT)
                assert process.wait(60) == 0
        finally:
            process.kill()


def test_a_browser_is_opened_only_where_there_is_a_screen(monkeypatch):
    opened = threading.Event()

    def fail(address):
        opened.set()
        raise OSError("no browser")

    monkeypatch.setattr(module.webbrowser, "open", fail)
    monkeypatch.setattr(module.sys, "platform", "linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    show_in_browser("http://127.0.0.1:1")
    assert not opened.is_set()
    monkeypatch.setenv("DISPLAY", ":0")
    show_in_browser("http://127.0.0.1:1")
    assert opened.wait(60)
