"""Learns the subword pieces: lines of text come in, a tokenizer goes out.

SentencePiece reports how far it is in its log alone, which goes to the standard error of the whole
process. So a text that takes a while is learned from in a process of its own, whose log is read.
The pieces are the same.
"""

import re
import subprocess
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from math import log
from typing import IO

from dragoman.config import TokenizerSettings
from dragoman.console import Progress
from dragoman.errors import RunError, UserError
from dragoman.tokenizer import Tokenizer, learn_tokenizer

LINES_WORTH_A_PROCESS = 20_000
TICK_S = 0.2
_SIZE = re.compile(rb"(Added|EM sub_iter).*? size=(\d+)")
_LAST_LINES = 20


def learn_pieces(texts: Iterable[str], lines: int, settings: TokenizerSettings) -> Tokenizer:
    """Learns from about so many lines, and shows the progress where it takes long."""
    if lines < LINES_WORTH_A_PROCESS:
        return learn_tokenizer(texts, settings)
    with subprocess.Popen(
        [sys.executable, "-m", "dragoman.preparation.piece_learner"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        try:
            reported = _Log(process.stderr, settings)
            with suppress(BrokenPipeError):  # it has failed, and its exit code says so
                _send(process.stdin, texts, lines, settings)
            learned = _Output(process.stdout)
            with Progress("learning pieces", "pieces", settings.vocabulary) as progress:
                while not learned.is_whole(TICK_S):
                    progress.reach(reported.pieces)
            reported.join()
            code = process.wait()
        except BaseException:
            process.kill()
            raise
    if code == UserError.exit_code:
        raise UserError(learned.content.decode())
    if code:
        raise RunError(
            f"the process that learns the pieces ended with exit code {code}"
            f"{reported.last_words()}; free memory, or lower tokenizer.sample_lines"
        )
    return Tokenizer(learned.content)


def pieces_of(line: bytes, settings: TokenizerSettings, first_size: int | None) -> int | None:
    """Returns how many pieces are as good as learned by a line of the log; None: it does not say.

    bpe adds pieces; unigram begins with `first_size` and drops a share of them in each iteration.
    """
    found = _SIZE.search(line)
    if not found:
        return None
    size, vocabulary = int(found[2]), settings.vocabulary
    if found[1] == b"Added":
        return min(size, vocabulary)
    first = max(first_size or size, vocabulary + 1)
    share = log(first / max(size, vocabulary)) / log(first / vocabulary)
    return max(0, round(vocabulary * share))


def _send(file: IO[bytes], texts: Iterable[str], lines: int, settings: TokenizerSettings) -> None:
    with file, Progress("reading text for the pieces", "lines", lines, is_about=True) as progress:
        file.write(settings.model_dump_json().encode() + b"\n")
        for text in texts:
            file.write(text.encode() + b"\n")
            progress.advance()


class _Log(threading.Thread):
    """Reads the log of SentencePiece until it ends."""

    def __init__(self, file: IO[bytes], settings: TokenizerSettings) -> None:
        super().__init__(daemon=True)
        self.pieces = 0
        self._file, self._settings = file, settings
        self._lines: list[bytes] = []
        self.start()

    def run(self) -> None:
        first_size: int | None = None
        for line in self._file:
            self._lines = [*self._lines[1 - _LAST_LINES :], line]
            if found := _SIZE.search(line):
                first_size = first_size or int(found[2])
                self.pieces = pieces_of(line, self._settings, first_size) or self.pieces

    def last_words(self) -> str:
        """Returns the last line, which says why it has failed, in parentheses."""
        words = [line.decode(errors="replace").strip() for line in self._lines if line.strip()]
        return f" ({words[-1]})" if words else ""


class _Output(threading.Thread):
    """Reads all of a file."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self.content = b""
        self._file = file
        self.start()

    def run(self) -> None:
        self.content = self._file.read()

    def is_whole(self, timeout_s: float) -> bool:
        self.join(timeout_s)
        return not self.is_alive()
