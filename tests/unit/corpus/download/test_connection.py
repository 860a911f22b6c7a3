import shutil
import ssl
import subprocess
from http.server import ThreadingHTTPServer

import pytest
from file_server import CONTENT, Handler, endless

from dragoman.corpus.download import connection
from dragoman.corpus.download.resumable import PAUSES_S
from dragoman.errors import UserError

CERTIFICATE = """
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=127.0.0.1
-addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out certificate.pem
"""


def test_a_refused_connection_is_said_at_once(server, get, pauses):
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as closed:
        port = closed.server_port
    with pytest.raises(UserError, match=r"refuses the connection.*by hand.*data\.mirror"):
        get(f"http://127.0.0.1:{port}/x")
    assert pauses == []


def test_a_name_that_cannot_be_resolved_is_said_at_once(get, pauses):
    with pytest.raises(UserError, match=r"its name cannot be resolved.*by hand.*data\.mirror"):
        get("http://corpus.invalid/x")
    assert pauses == []


def test_the_proxy_of_the_environment_is_used(server, get, monkeypatch):
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.server_port}")
    assert get("http://corpus.invalid/a/b.tgz").read_bytes() == CONTENT
    assert server.requests[0]["path"] == "http://corpus.invalid/a/b.tgz"


@pytest.mark.skipif(not shutil.which("openssl"), reason="makes its certificate with openssl")
def test_a_secure_address_is_not_followed_to_an_insecure_one(server, get, tmp_path, monkeypatch):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        CERTIFICATE.split(),
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    url = server.url.replace("http:", "https:")
    with pytest.raises(UserError, match="certificate is not valid"):
        get(url)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    insecure = "http://corpus.invalid/x"
    server.answers = [lambda handler: handler.send(302, b"", Location=insecure)]
    with pytest.raises(UserError, match=f"redirects to {insecure}"):
        get(url)
    server.answers = [lambda handler: handler.send(302, b"", Location="/elsewhere")]
    assert get(url).read_bytes() == CONTENT


def test_a_server_that_dribbles_is_given_up_after_some_tries(server, get, pauses, monkeypatch):
    monkeypatch.setattr(connection, "PACE_WINDOW_S", 0.05)
    monkeypatch.setattr(connection, "SLOWEST_BYTES_PER_S", 100_000)
    server.answers = [lambda handler: endless(handler, b"x", 0.001)] * (len(PAUSES_S) + 1)
    with pytest.raises(UserError, match="sends less than 100000 bytes per second"):
        get()
    assert pauses == list(PAUSES_S)


@pytest.mark.parametrize(
    "answer",
    [b"HTTP/1.1 100 -\r\n\r\n" * 1000, b"\x1b[2J" * 10_000, b"X: " + b"x" * 50_000 + b"\r\n"],
)
def test_an_answer_that_never_comes_to_the_file_is_given_up_in_a_short_sentence(
    server, get, answer
):
    def only_headers(handler):
        try:
            if answer.startswith(b"X"):
                handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while not server.over.is_set():
                handler.wfile.write(answer)
        except OSError:
            pass

    server.answers = [only_headers] * (len(PAUSES_S) + 1)
    with pytest.raises(UserError, match=r"headers are too long|the connection broke") as e:
        get()
    sentence = str(e.value)
    assert len(sentence) < 1000
    assert sentence.isprintable()


def test_the_endless_page_of_a_redirection_is_not_read(server, get):
    def redirects(handler):
        handler.send_response(302)
        handler.send_header("Location", "/elsewhere")
        handler.end_headers()
        try:
            while not server.over.is_set():
                handler.wfile.write(b"x" * 50_000)
        except OSError:
            pass

    server.answers = [redirects]
    assert get().read_bytes() == CONTENT
