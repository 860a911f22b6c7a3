"""`dragoman serve` as a real process, and requests to it."""

import http.client
import json
import os
import signal
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from processes import dragoman, start_dragoman, wait_until


class Server:
    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process, self.address = process, address
        self.host, self.port = urllib.parse.urlsplit(address).netloc.split(":")

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, int(self.port), timeout=60)

    def get(self, path: str) -> tuple[int, str]:
        connection = self.connect()
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def translate(self, text: str) -> tuple[int, dict[str, object]]:
        connection = self.connect()
        try:
            return translate_on(connection, text)
        finally:
            connection.close()

    def is_ready(self) -> bool:
        assert self.process.poll() is None, self.process.communicate()
        return self.get("/health")[0] == 200

    def metric(self, name: str) -> float:
        """The sum of the values of a metric over its labels."""
        lines = self.get("/metrics")[1].splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))

    def stop(self) -> tuple[int, str, str]:
        """Ends it as a service manager does; returns its code and what it has written."""
        self.process.send_signal(signal.SIGTERM)
        output, errors = self.process.communicate(timeout=100)
        return self.process.returncode, output, errors


def translate_on(
    connection: http.client.HTTPConnection, text: str
) -> tuple[int, dict[str, object]]:
    body = json.dumps({"q": text, "source": "en", "target": "de"})
    connection.request("POST", "/translate", body, {"content-type": "application/json"})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


@contextmanager
def running_server(*arguments: object, **environment: str) -> Iterator[Server]:
    """A server on a free port of loopback, once its models are loaded."""
    process = start_dragoman(
        *("serve", *arguments, "--port", "0"),
        env=os.environ | {"OMP_NUM_THREADS": "2"} | environment,
    )
    try:
        first = process.stdout.readline()
        assert " at http://" in first, (first, process.communicate())
        server = Server(process, first.split()[-1])
        wait_until(server.is_ready)
        yield server
    finally:
        process.kill()
        process.communicate()


def train_with_steps(recipe: Path, run: Path, steps: int) -> None:
    """Trains a run that keeps a checkpoint of each of its steps.

    In attempts of one step each: what is saved while a run goes on is skipped on a busy machine,
    where the save before is still being written.
    """
    for step in range(1, steps + 1):
        settings = [f"training.steps={step}", f"checkpoints.keep_last={steps}"]
        done = dragoman(
            "train", recipe, "--run", run, *(part for each in settings for part in ("--set", each))
        )
        assert done.returncode == 0, (done.stdout, done.stderr)
