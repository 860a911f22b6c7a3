"""`dragoman serve` as a process: clients of others, reloads under load, slow and lost clients."""

import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
import schemathesis
from digits_language import write_recipe
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from libretranslatepy import LibreTranslateAPI
from processes import dragoman, sentence, wait_until
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance
from server_process import running_server, train_with_steps, translate_on

from dragoman.checkpoints.names import BEST, folder_of, point_to
from dragoman.decoding.translator import Translator
from dragoman.rundir import RunDir

pytestmark = pytest.mark.timeout(300)  # the first trains a run

STEPS = 2
RELOADS = 20
EXAMPLES = 50
ARGOS = os.environ.get("ARGOS_PYTHON", "")

WITH_ARGOS = """
import sys
from argostranslate.apis import LibreTranslateAPI
from argostranslate.translate import Language, RemoteTranslation
from argostranslatefiles import argostranslatefiles

address, *files = sys.argv[1:]
api = LibreTranslateAPI(address)
assert {each["code"] for each in api.languages()} == {"en", "de"}
translation = RemoteTranslation(Language("en", "English"), Language("de", "German"), api)
for file in files:
    print(argostranslatefiles.translate_file(translation, file))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    train_with_steps(write_recipe(folder), folder / "run", STEPS)
    return folder / "run"


@pytest.fixture(scope="module")
def server(run):
    with running_server(run, "--reload-every", "0.2") as running:
        yield running


def test_it_translates_as_the_command_does_and_has_a_page(server, run):
    texts = ["one two three", "four five.  six seven."]
    expected = Translator.load(run).translate(["one two three"])
    assert server.translate(texts[0]) == (200, {"translatedText": expected[0]})
    assert server.translate(texts[1])[0] == 200
    status, page = server.get("/")
    assert status == 200
    assert "<title>Dragoman</title>" in page
    (card,) = json.loads(server.get("/models")[1])
    assert card["report"] is None or card["report"] == "report/en/de"


def test_the_client_of_libretranslate_works_unchanged(server, run):
    client = LibreTranslateAPI(server.address)
    (expected,) = Translator.load(run).translate(["one two"])
    assert client.translate("one two", "en", "de") == expected
    assert client.detect("This is the house of the people.")[0]["language"] == "en"
    assert {each["code"]: each["targets"] for each in client.languages()} == {
        "en": ["de"],
        "de": [],
    }


@pytest.mark.skipif(not ARGOS, reason="no ARGOS_PYTHON with argostranslatefiles")
def test_argostranslatefiles_translates_files_through_it(server, tmp_path):
    (tmp_path / "numbers.txt").write_text("one two\n\nthree four\n")
    (tmp_path / "page.html").write_text("<p>one two</p><p>three</p>")
    files = [str(tmp_path / name) for name in ("numbers.txt", "page.html")]
    done = subprocess.run(
        [ARGOS, "-c", WITH_ARGOS, server.address, *files],
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    text, page = (Path(path).read_text("utf-8") for path in done.stdout.split())
    assert text.count("\n") == 3
    assert page.count("<p>") == 2


def test_no_request_is_lost_while_better_checkpoints_are_loaded(server, run):
    checkpoints = RunDir(run).checkpoints
    is_over = threading.Event()

    def ask_on_and_on(number):
        """Returns the statuses of many requests, on connections that last and on new ones."""
        statuses = []
        while not is_over.is_set():
            connection = server.connect()
            statuses += [translate_on(connection, f"one two {number}")[0] for _ in range(5)]
            connection.close()
        return statuses

    def step():
        (card,) = json.loads(server.get("/models")[1])
        return card["steps"][0]

    with ThreadPoolExecutor(6) as clients:
        asked = [clients.submit(ask_on_and_on, number) for number in range(6)]
        try:
            for _ in range(RELOADS):
                better = step() % STEPS + 1
                point_to(checkpoints, BEST, folder_of(better))
                wait_until(lambda better=better: step() == better)
        finally:
            is_over.set()
        statuses = [status for each in asked for status in each.result()]
    assert len(statuses) > RELOADS
    assert set(statuses) == {200}
    assert server.metric("dragoman_reloads_total") >= RELOADS


def test_a_client_that_disappears_frees_its_place(run):
    with running_server(run, "--client-requests", "1") as server:
        body = json.dumps(
            {"q": "\n".join(["one two three"] * 10_000), "source": "en", "target": "de"}
        )
        connection = server.connect()
        connection.request("POST", "/translate/stream", body, {"content-type": "application/json"})
        answer = connection.getresponse()
        assert answer.readline()
        assert server.translate("one")[0] == 429
        answer.close()
        connection.close()
        wait_until(lambda: server.translate("one")[0] == 200)
        assert server.metric("dragoman_queue_sentences") == 0


def test_slow_clients_are_sent_away_and_others_do_not_notice(server):
    """Of the head of a request, and of its body; all limits of this kind are the server's own."""
    slow = [socket.create_connection((server.host, int(server.port))) for _ in range(100)]
    try:
        for each in slow:
            each.sendall(b"POST /translate HTTP/1.1\r\nhost: x\r\n")
        assert server.translate("one")[0] == 200
    finally:
        for each in slow:
            each.close()
    assert server.translate("two")[0] == 200


def test_a_refusal_arrives_though_the_client_still_sends(server):
    connection = server.connect()
    body = b"x" * 20_000_000
    for path, status in (("/translate", 413), ("/health", 405), ("/translate/stream", 413)):
        connection.request("POST", path, body)
        answer = connection.getresponse()
        assert answer.status == status
        assert "error" in json.loads(answer.read())
    assert translate_on(connection, "one")[0] == 200
    connection.close()


@pytest.mark.parametrize("text", ["<![", "<a " * 6000, "<!-- >" * 3000, "«" * 19_000, " " * 19_000])
def test_texts_that_are_hard_to_read_are_answered(server, text):
    connection = server.connect()
    body = json.dumps({"q": text, "source": "en", "target": "de", "format": "html"})
    connection.request("POST", "/translate", body, {"content-type": "application/json"})
    assert connection.getresponse().status == 200
    connection.close()


def test_sigterm_finishes_what_is_running(run):
    with running_server(run) as server:
        connection = server.connect()
        lines = 2000
        body = json.dumps({"q": "\n".join(["one two"] * lines), "source": "en", "target": "de"})
        connection.request("POST", "/translate/stream", body, {"content-type": "application/json"})
        answer = connection.getresponse()
        answer.readline()
        server.process.send_signal(signal.SIGTERM)
        rest = answer.read().decode().splitlines()
        assert len(rest) == lines - 1
        assert all("translatedText" in line for line in rest)
        connection.close()
        _, errors = server.process.communicate(timeout=100)
        assert server.process.returncode == 0, errors
        assert errors == ""


def test_what_disappears_while_it_is_served_goes_on(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "run", symlinks=True)
    with running_server(copy, "--reload-every", "0.1") as server:
        before = server.translate("one two three")
        shutil.rmtree(copy)
        time.sleep(0.3)
        assert server.translate("one two three") == before
        code, _, errors = server.stop()
        assert (code, errors) == (0, "")


def test_a_key_comes_from_the_environment_or_a_file_and_the_report_is_private_then(run, tmp_path):
    with running_server(run, DRAGOMAN_API_KEY="secret") as server:
        assert server.translate("one")[0] == 403
        assert LibreTranslateAPI(server.address, "secret").translate("one", "en", "de")
        assert "secret" not in " ".join(server.process.args)
        assert json.loads(server.get("/models")[1])[0]["report"] is None


def test_a_port_that_is_taken_is_refused_in_one_sentence(server, run):
    assert server.port in sentence(dragoman("serve", run, "--port", server.port), 2)


def test_a_model_that_cannot_be_loaded_ends_the_server(run, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.toml").write_bytes((run / "config.toml").read_bytes())
    assert "checkpoint" in sentence(dragoman("serve", tmp_path / "run", "--port", "0"), 2)


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode), ids=lambda mode: mode.value)
def test_random_requests_never_break_it(server, mode):
    """What the description allows, and what it forbids: every answer is one that it describes."""
    schema = schemathesis.openapi.from_url(f"{server.address}/spec")
    operations = [found.ok() for found in schema.get_all_operations()]
    assert {operation.path for operation in operations} >= {"/translate", "/translate/stream"}
    asked = 0
    for operation in operations:

        @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy(mode))
        def ask(case):
            nonlocal asked
            asked += 1
            case.call_and_validate(
                checks=[not_a_server_error, status_code_conformance, response_schema_conformance]
            )

        with suppress(Unsatisfiable):  # a route without fields has none that could be wrong
            ask()
    assert asked > EXAMPLES
