import os
import signal
import socket
import sys
import threading
import time

import psutil
import pytest
from webhook_server import SECRET, status, webhook_server

from dragoman.errors import ConfigError
from dragoman.watch import delivery
from dragoman.watch.delivery import Channel, to_command, to_webhook, webhook_address
from dragoman.watch.messages import trial_message

MESSAGE = trial_message("demo", "desk", 5.0)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(delivery, "PAUSES_S", (0.01,) * 6)


@pytest.fixture
def webhook():
    with webhook_server() as server:
        yield server


def delivered(try_once, *messages):
    """Delivers through a channel; returns its complaints."""
    complaints = []
    channel = Channel(try_once, complaints.append)
    for message in messages or (MESSAGE,):
        channel.send(message)
    channel.close(time.monotonic() + 60)
    return complaints


def test_a_message_arrives_as_json(webhook):
    assert delivered(to_webhook(webhook.address)) == []
    assert webhook.messages == [MESSAGE.model_dump(mode="json")]


def test_a_server_that_fails_twice_is_asked_three_times(webhook):
    webhook.answers = [status(503), status(500)]
    assert delivered(to_webhook(webhook.address)) == []
    assert (len(webhook.posts), len(webhook.messages)) == (3, 1)


def test_messages_arrive_in_their_order_behind_one_that_is_retried(webhook):
    webhook.answers = [status(502)]
    messages = [MESSAGE.model_copy(update={"step": step}) for step in range(5)]
    assert delivered(to_webhook(webhook.address), *messages) == []
    assert [message["step"] for message in webhook.messages] == [0, 1, 2, 3, 4]


def test_a_server_that_asks_for_patience_gets_it(webhook):
    webhook.answers = [status(429, Retry_After="7")]
    failure = to_webhook(webhook.address)(MESSAGE)
    assert (failure.pause_s, failure.is_final) == (7.0, False)
    webhook.answers = [status(429, Retry_After="0")]
    assert delivered(to_webhook(webhook.address)) == []


@pytest.mark.parametrize("code", [400, 401, 404, 410])
def test_what_is_refused_for_good_is_sent_once(webhook, code):
    webhook.answers = [status(code)]
    (complaint,) = delivered(to_webhook(webhook.address))
    assert f"status {code}" in complaint
    assert SECRET not in complaint
    assert len(webhook.posts) == 1


@pytest.mark.parametrize("code", [301, 302, 307, 308])
@pytest.mark.parametrize("to", ["file:///etc/passwd", "http://127.0.0.1:9/x"])
def test_redirects_are_not_followed(webhook, code, to):
    webhook.answers = [status(code, Location=to)]
    (complaint,) = delivered(to_webhook(webhook.address))
    assert "redirects elsewhere" in complaint
    assert SECRET not in complaint


def test_a_server_that_always_fails_is_given_up_with_one_sentence(webhook):
    webhook.answers = [status(500)] * 20
    (complaint,) = delivered(to_webhook(webhook.address))
    assert len(webhook.posts) == len(delivery.PAUSES_S) + 1
    assert SECRET not in complaint
    assert "http://127.0.0.1" in complaint


def test_a_server_that_hangs_costs_a_bounded_time(webhook, monkeypatch):
    monkeypatch.setattr(delivery, "TRY_S", 0.1)
    webhook.hangs = True
    failure = to_webhook(webhook.address)(MESSAGE)
    assert not failure.is_final
    assert SECRET not in failure.why


def test_a_server_that_trickles_costs_a_bounded_time(monkeypatch):
    monkeypatch.setattr(delivery, "TRY_S", 0.3)
    over = threading.Event()

    def trickle(listener):
        connection, _ = listener.accept()
        with connection:
            while not over.wait(0.02):
                try:
                    connection.sendall(b"H")
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=trickle, args=(listener,))
        thread.start()
        failure = to_webhook(f"http://127.0.0.1:{listener.getsockname()[1]}/x")(MESSAGE)
        over.set()
        thread.join()
    assert "did not answer within" in failure.why


def test_nobody_there_is_one_sentence_without_the_path(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    (complaint,) = delivered(to_webhook(f"http://127.0.0.1:{port}/{SECRET}"))
    assert "Connection refused" in complaint
    assert SECRET not in complaint


def test_closing_gives_up_in_time(webhook):
    webhook.hangs = True
    complaints = []
    channel = Channel(to_webhook(webhook.address), complaints.append)
    channel.send(MESSAGE)
    channel.close(time.monotonic() + 0.2)
    (complaint,) = complaints
    assert "after the run's end" in complaint


def test_a_queue_that_is_full_drops_and_says_so(webhook, monkeypatch):
    monkeypatch.setattr(delivery, "MOST_WAITING", 1)
    webhook.hangs = True
    complaints = []
    channel = Channel(to_webhook(webhook.address), complaints.append)
    for _ in range(5):
        channel.send(MESSAGE)
    assert any("was dropped" in complaint for complaint in complaints)
    channel.close(time.monotonic())


def test_a_command_gets_the_message_on_its_input_and_in_variables(tmp_path):
    told = tmp_path / "told"
    program = (
        "import os, pathlib, sys; pathlib.Path(sys.argv[1]).write_text(sys.stdin.read() + '|' "
        "+ os.environ['DRAGOMAN_KIND'] + '|' + os.environ['DRAGOMAN_TEXT'])"
    )
    assert delivered(to_command((sys.executable, "-c", program, str(told)))) == []
    assert told.read_text() == f"{MESSAGE.model_dump_json()}|test|{MESSAGE.text}"


def test_a_command_that_fails_is_tried_again(tmp_path):
    tries = tmp_path / "tries"
    script = f'echo x >> "{tries}"; test $(wc -l < "{tries}") -ge 3'
    assert delivered(to_command(("sh", "-c", script))) == []
    assert tries.read_text() == "x\n" * 3


def test_a_command_needs_no_shell(tmp_path):
    assert delivered(to_command(("test", "$(touch x); echo", "=", "$(touch x); echo"))) == []


def test_a_command_that_hangs_is_ended_with_all_it_started(monkeypatch):
    monkeypatch.setattr(delivery, "COMMAND_S", 0.1)
    failure = to_command(("sh", "-c", "sleep 1000 & sleep 1000"))(MESSAGE)
    assert "took longer" in failure.why


def test_a_command_that_hangs_does_not_outlive_the_channel(monkeypatch, tmp_path):
    """Of a second try that begins shortly before the last moment, nobody would see the end."""
    monkeypatch.setattr(delivery, "COMMAND_S", 0.5)
    monkeypatch.setattr(delivery, "ENDING_S", 0.2)
    started = tmp_path / "started"
    complaints = []
    channel = Channel(
        to_command(("sh", "-c", f'echo $$ >> "{started}"; exec sleep 1000')), complaints.append
    )
    channel.send(MESSAGE)
    channel.close(time.monotonic() + 1.0)
    alive = [pid for pid in map(int, started.read_text().split()) if psutil.pid_exists(pid)]
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
    assert not alive
    assert len(complaints) == 1


def test_a_command_that_does_not_read_its_input_is_no_failure():
    assert delivered(to_command(("true",))) == []


def test_a_command_that_is_gone_is_not_tried_again():
    assert to_command(("/nowhere/program",))(MESSAGE).is_final


def test_an_address_comes_from_the_variable():
    assert webhook_address("HOOK", {"HOOK": " https://host/x\n"}) == "https://host/x"


@pytest.mark.parametrize(
    "address",
    [
        f"ftp://host/{SECRET}",
        f"file:///{SECRET}",
        f"host/{SECRET}",
        f"https:///{SECRET}",
        f"https://host:99999/{SECRET}",
        f"https://[::1/{SECRET}",
        f"https://user:{SECRET}@host/",
        f"https://host/{SECRET}\nX-Header: y",
        f"https://host/{SECRET} y",
        f"https://hóst/{SECRET}",
    ],
)
def test_what_is_no_address_is_refused_without_showing_it(address):
    with pytest.raises(ConfigError, match="HOOK should hold an address") as refused:
        webhook_address("HOOK", {"HOOK": address})
    assert SECRET not in str(refused.value)
    assert str(refused.value).startswith("notify.webhook_variable: ")


def test_a_variable_that_is_not_set_is_refused_by_name():
    with pytest.raises(ConfigError, match="HOOK is not set"):
        webhook_address("HOOK", {})


def test_retry_after_is_a_number_a_date_or_nothing():
    assert delivery._retry_after_s("12", 0.0) == 12.0
    assert delivery._retry_after_s("Thu, 01 Jan 1970 00:01:00 GMT", 15.0) == 45.0
    assert delivery._retry_after_s("soon", 0.0) == 0.0
    assert delivery._retry_after_s("", 0.0) == 0.0
