"""The program that runs on hosts, as a process."""

import json
import subprocess
import sys

import psutil
import pytest
from processes import wait_until

from dragoman.cluster.ssh import read_message

HERE = "127.0.0.1"


class Host:
    def __init__(self, program="from dragoman.check.host import main; main()"):
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.number = 0

    def order(self, order, **details):
        self.number += 1
        line = json.dumps({"order": order, "number": self.number, **details})
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.number

    def answer(self):
        return read_message(self.process.stdout.readline())

    def ask(self, order, **details):
        number = self.order(order, **details)
        answer = self.answer()
        assert answer["number"] == number
        return answer

    def close(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def start():
    started = []

    def new(**more):
        started.append(Host(**more))
        return started[-1]

    yield new
    for host in started:
        host.close()


def test_orders_are_answered_by_number(start, tmp_path):
    host = start()
    answer = host.ask("clock")
    assert answer["answered_at"] >= answer["heard_at"]
    described = host.ask("describe", folder=str(tmp_path), prepared="none", run="")
    assert described["facts"]["folder"] == str(tmp_path)
    assert host.ask("disk", folder=str(tmp_path))["bytes_per_s"] > 0


def test_two_hosts_measure_the_way_between_them(start):
    sender, receiver = start(), start()
    secret = "5" * 64
    receiver.order("listen", address=HERE, secret=secret, several=0)
    port = receiver.answer()["port"]
    trip = sender.ask("send", own=HERE, address=HERE, port=port, secret=secret, several=0)
    assert trip["round_trip_s"] > 0
    assert receiver.answer()["one_flow_bytes_per_s"] > 1e6


def test_what_fails_is_told_and_the_next_order_is_done(start, tmp_path):
    host = start()
    assert "nowhere" in host.ask("disk", folder=str(tmp_path / "nowhere"))["error"]
    assert "192.0.2.1" in host.ask("listen", address="192.0.2.1", secret="a", several=0)["error"]
    assert "error" in host.ask("listen")  # a key is missing
    assert "error" in host.ask("dance")
    assert "heard_at" in host.ask("clock")


def test_it_ends_with_its_input_while_it_listens_or_computes(start):
    host = start()
    host.ask("warm up", workers=1, device="cpu")
    (worker,) = psutil.Process(host.process.pid).children()
    host.order("listen", address=HERE, secret="a" * 64, several=4)
    assert "port" in host.answer()
    host.process.stdin.close()
    wait_until(lambda: host.process.poll() is not None, 10)
    wait_until(lambda: not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE, 10)
    host.process.stdin = None


def test_it_ends_when_orders_stop_arriving(start):
    program = "from dragoman.check import host; host.SILENCE_S = 0.3; host.main()"
    host = start(program=program)
    wait_until(lambda: host.process.poll() is not None, 20)
    assert host.process.returncode == 0


def test_all_workers_compute_at_once(start):
    host = start()
    host.ask("warm up", workers=2, device="cpu")
    host.ask("wait")
    speeds = [worker["flops_per_s"] for worker in host.ask("compute")["workers"]]
    assert len(speeds) == 2
    assert min(speeds) > 0


def test_a_worker_that_fails_says_why(start):
    host = start()
    host.ask("warm up", workers=1, device="cuda")
    assert "failed" in host.ask("wait")["error"]
