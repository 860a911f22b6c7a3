"""Programs in place of hosts, which answer, fail, end or hang."""

import sys
import threading
import time

import pytest

from dragoman.check import session
from dragoman.check.session import Session, SilentHostError, in_parallel, on_each, sessions_on
from dragoman.cluster.hosts import Cluster, Host
from dragoman.errors import DragomanError, RunError, UserError

ECHO = """
import json, sys
print("Welcome to this host!", flush=True)
for line in sys.stdin:
    order = json.loads(line)
    if order["order"] == "fail":
        order = {"error": "cannot", "number": order["number"]}
    if order.get("order") != "hang":
        print("@dragoman " + json.dumps(order), flush=True)
"""
HOST = Host(name="a")


@pytest.fixture
def start():
    started = []

    def new(program=ECHO, name="a"):
        started.append(Session(Host(name=name), [sys.executable, "-c", program]))
        return started[-1]

    yield new
    for one in started:
        one.close()


def test_answers_belong_to_their_orders(start):
    one = start()
    first, second = one.order("x", value=1), one.order("x", value=2)
    assert one.answer(second, 10)["value"] == 2
    assert one.answer(first, 10)["value"] == 1


def test_an_error_names_the_host_and_loses_nothing(start):
    one = start()
    with pytest.raises(RunError, match=r"^a: cannot$"):
        one.ask("fail", 10)
    assert one.loss is None
    assert one.ask("x", 10)


def test_a_host_that_hangs_is_named_and_lost(start):
    one = start()
    with pytest.raises(SilentHostError, match=r"^a: has not answered"):
        one.ask("hang", 0.1)
    assert isinstance(one.loss, SilentHostError)


def test_a_host_that_ends_is_explained_as_ssh_does(start):
    one = start("import sys; sys.exit(7)")
    with pytest.raises(RunError, match="a: ended with code 7"):
        one.ask("x", 10)
    assert one.loss
    gone = start("import sys; print('Connection refused', file=sys.stderr); sys.exit(255)")
    with pytest.raises(UserError, match="nothing listens on its ssh port"):
        gone.ask("x", 10)


def test_closing_wakes_whoever_waits(start):
    one = start()
    errors = []

    def wait():
        try:
            one.ask("hang", 60)
        except RunError as error:
            errors.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    one.close()
    waiting.join(10)
    assert errors
    assert one._process.poll() is not None


def test_each_host_has_its_own_result(start):
    sessions = {"a": start(name="a"), "b": start(name="b")}
    answers = on_each(sessions, lambda s: s.ask("x" if s.name == "a" else "fail", 10))
    assert answers["a"]["order"] == "x"
    assert isinstance(answers["b"], DragomanError)


def test_an_interruption_ends_the_sessions(start):
    sessions = {"a": start()}

    def interrupt(item):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_parallel(interrupt, [1], sessions)
    assert sessions["a"]._process.poll() is not None


def test_this_machine_needs_no_ssh():
    with sessions_on(None, HOST) as sessions:
        assert "heard_at" in sessions["a"].ask("clock", 30)
        process = sessions["a"]._process
    assert process.returncode == 0


def test_hosts_hear_that_the_check_goes_on(monkeypatch):
    monkeypatch.setattr(session, "ALIVE_EVERY_S", 0.05)
    program = "import sys\nfor line in sys.stdin: print('@dragoman {\"number\": 1}', flush=True)"
    command = [sys.executable, "-c", program]
    monkeypatch.setattr(session, "ssh_command", lambda *_: command)
    with sessions_on(Cluster(hosts=(HOST,)), HOST) as sessions:
        # Any line is answered as if it were the first order: one comes by itself.
        number = sessions["a"].order("first")
        assert sessions["a"].answer(number, 10)
        deadline = time.monotonic() + 10
        while sessions["a"]._numbers < 3:
            assert time.monotonic() < deadline
            time.sleep(0.01)
