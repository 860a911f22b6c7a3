import threading
from http.server import ThreadingHTTPServer

import pytest
from file_server import CONTENT, Handler

from dragoman.corpus.download import fetch


@pytest.fixture
def server(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.content, server.etag = CONTENT, '"one"'
        server.requests, server.answers = [], []
        server.over, server.given_up = threading.Event(), threading.Event()
        server.url = f"http://127.0.0.1:{server.server_port}/data/corpus.bin"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.over.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def pauses():
    return []


@pytest.fixture
def get(server, tmp_path, pauses):
    def get(url=server.url, **options):
        return fetch(url, tmp_path / "cache", pause=pauses.append, **options)

    return get
