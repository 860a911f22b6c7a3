"""With a real zygote, which imports torch once for all tests."""

import os
import queue
import signal
import socket
import subprocess
import sys

import pytest

from dragoman.cluster.zygote import Zygote, signal_name


class Told:
    """A zygote, and what it has reported."""

    def __init__(self):
        self._messages = queue.Queue()
        # Into a pipe, as an agent starts it whose workers print into pipes.
        self._output, theirs = os.pipe()
        self.zygote = Zygote(os.environ, self._messages.put, theirs)
        os.close(theirs)
        assert self.next() == {"ready": True}

    def next(self):
        return self._messages.get(timeout=100)

    def close(self):
        self.zygote.close()
        os.close(self._output)

    def code(self, name):
        """With which the child of that name ends that is forked next."""
        born, ended = self.next(), self.next()
        assert born["name"] == ended["name"] == name
        assert born["born"] == ended["ended"]
        return ended["code"]


@pytest.fixture(scope="module")
def told():
    made = Told()
    yield made
    made.close()
    assert made.next() is None


def test_a_signal_to_a_worker_that_has_just_been_born_is_not_lost(told):
    """It is sent the moment its process is known, when it may still be as deaf as its parent."""
    codes = []
    for number in range(30):
        told.zygote.fork_worker(f"worker {number}", ["lab", "--help"], {"RANK": "0"})
        os.kill(told.next()["born"], signal.SIGTERM)
        codes.append(told.next()["code"])
    # A worker may have ended by itself where this process had to wait for its turn.
    assert codes.count(-signal.SIGTERM) > 15


def test_a_worker_is_a_dragoman_whose_output_and_exit_code_are_its_own(told):
    ours, theirs = os.pipe()
    told.zygote.fork_worker("worker", ["lab", "--help"], {"RANK": "0"}, theirs)
    os.close(theirs)
    assert told.code("worker") == 0
    with os.fdopen(ours) as output:
        assert "dragoman lab up" in output.read()
    told.zygote.fork_worker("worker", ["no-such-command"], {"RANK": "0"})
    assert told.code("worker") == 2


def test_a_store_answers_behind_the_socket_that_it_was_given(told):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        told.zygote.fork_store(listening)
    store = told.next()["born"]
    program = (
        "import sys; from torch._C._distributed_c10d import TCPStore\n"
        "store = TCPStore('127.0.0.1', int(sys.argv[1]), is_master=False)\n"
        "store.set('key', 'value'); print(store.get('key'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(port)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "b'value'\n"
    os.kill(store, signal.SIGKILL)
    assert told.next() == {"name": "store", "ended": store, "code": -signal.SIGKILL}


def test_signals_have_names():
    assert signal_name(9) == "SIGKILL"
    assert signal_name(40) == "signal 40"
