"""Another tool in a process of its own: batches of ids go to it as lines of JSON and come back."""

import json
import os
import selectors
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from train_bench.watch import CandidateError, tail

from dragoman.tokenizer import Ids

LIMIT_S = 900.0
"""For a start or an answer."""


class Answer(NamedTuple):
    seconds: float
    """That the tool itself took."""
    batches: list[list[Ids]]


class Peer:
    """Runs `command` until it is closed; what it writes to its error output goes to a file."""

    def __init__(
        self, command: Sequence[str], log: Path, threads: int, limit_s: float = LIMIT_S
    ) -> None:
        self._log, self._limit_s = log, limit_s
        count = str(threads)
        # A path to this project's packages must not reach an environment of another tool.
        own = {"OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count, "PYTHONPATH": ""}
        offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **own, **offline},
            )
        self._received = bytearray()

    def wait_until_ready(self) -> None:
        self._receive()

    def translate(
        self, batches: Sequence[Sequence[Ids]], limits: Sequence[int], beam: int
    ) -> Answer:
        """Returns the translations of batches, each of at most so many pieces."""
        request = {"batches": batches, "limits": limits, "beam": beam}
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failed() from None
        return Answer(**self._receive())

    def close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                with suppress(BrokenPipeError):
                    stream.close()
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout
        until = time.monotonic() + self._limit_s
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._received:
                if not selector.select(max(0.0, until - time.monotonic())):
                    raise CandidateError(
                        f"no answer after {self._limit_s:.0f} s: {tail(self._log)}"
                    )
                some = os.read(self._process.stdout.fileno(), 1 << 20)
                if not some:
                    raise self._failed()
                self._received += some
        line, _, rest = bytes(self._received).partition(b"\n")
        self._received = bytearray(rest)
        found: dict[str, Any] = json.loads(line)
        return found

    def _failed(self) -> CandidateError:
        self._process.wait()
        return CandidateError(f"exit code {self._process.returncode}: {tail(self._log)}")
