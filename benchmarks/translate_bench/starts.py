"""How long a new process takes until it has translated one sentence."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from train_bench.candidates import own_source
from train_bench.watch import CandidateError, tail

from dragoman.decoding.engine import most_pieces
from translate_bench.candidates import OURS, PLAIN, TORCH
from translate_bench.job import Task
from translate_bench.peer import Peer

Start = Callable[[], None]


def starts_in_this_environment(task: Task, sentence: str) -> dict[str, Start]:
    model = str(task.folder / "ctranslate2")
    run = str(task.run.resolve())

    def ours(engine: str) -> str:
        return (
            "from dragoman import Translator as T\n"
            f"print(T.load({run!r}, engine={engine!r}).translate([{sentence!r}]))"
        )

    programs = {
        OURS: ours("auto"),
        TORCH: ours("torch"),
        PLAIN: (
            "import ctranslate2, sentencepiece\n"
            f"p = sentencepiece.SentencePieceProcessor({model + '/tokenizer.model'!r})\n"
            f"t = ctranslate2.Translator({model!r})\n"
            f"r = t.translate_batch(p.encode([{sentence!r}], out_type=str))\n"
            "print(p.decode(r[0].hypotheses[0]))"
        ),
    }
    return {
        name: _program(program, task.folder / "start.log") for name, program in programs.items()
    }


def _program(program: str, log: Path) -> Start:
    def start() -> None:
        with log.open("wb") as output:
            command = [sys.executable, "-c", program]
            done = subprocess.run(
                command,
                check=False,
                stdout=output,
                stderr=output,
                env={**os.environ, **own_source()},
            )
        if done.returncode:
            raise CandidateError(f"exit code {done.returncode}: {tail(log)}")

    return start


def start_of_peer(command: list[str], task: Task, sentence: str) -> Start:
    """A peer gets ids, so that its start has no part for a tokenizer."""
    encoded = task.tokenizer.encode([sentence])
    limit, beam = most_pieces(len(encoded[0]), task.decoding), task.decoding.beam

    def start() -> None:
        with Peer(command, task.folder / "start.log", task.threads) as peer:
            peer.wait_until_ready()
            peer.translate([encoded], [limit], beam)

    return start


def measure_starts(
    starts: Mapping[str, Start], rounds: int, failed: Callable[[str, str], None]
) -> dict[str, list[float]]:
    """Returns the seconds of each candidate, one a turn."""
    taken: dict[str, list[float]] = {name: [] for name in starts}
    for _ in range(rounds):
        for name in list(taken):
            begun = time.perf_counter()
            try:
                starts[name]()
            except CandidateError as error:
                failed(name, str(error))
                del taken[name]
            else:
                taken[name].append(time.perf_counter() - begun)
    return taken
