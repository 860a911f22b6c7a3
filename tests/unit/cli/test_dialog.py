"""The dialog is tested at a real terminal (a pseudo-terminal), with a translator into capitals."""

import os
import signal
import sys
from functools import partial

import pexpect
import pytest

from dragoman.cli.dialog import candidate_list
from dragoman.documents.record import BestText, TranslatedSentence, TranslatedText

PROGRAM = """
from functools import partial
from dragoman.cli.dialog import hold_dialog
from dragoman.documents.layout import take_apart
from dragoman.documents.record import BestText
from dragoman.documents.translation import translate_texts
from dragoman.errors import UserError

split = partial(take_apart, language="en", lines="split")

def search(sentences, prefixes):
    if "refuse" in sentences[0]:
        raise UserError("it was refused")
    if "interrupt" in sentences[0]:
        raise KeyboardInterrupt
    return [[BestText(sentence.upper())] for sentence in sentences]

hold_dialog(lambda line: translate_texts([line], split, search)[0], lambda text: text.text)
print("the end")
"""


@pytest.fixture
def terminal():
    environment = os.environ | {"TERM": "xterm", "LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"}
    environment.pop("NO_COLOR", None)
    child = pexpect.spawn(
        sys.executable,
        ["-c", PROGRAM],
        env=environment,
        encoding="utf-8",
        timeout=60,
        echo=True,
        # Programs that a shell starts in the background are born deaf to Ctrl-C.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    child.expect("Ctrl-D quits")
    child.expect("> ")
    yield child
    child.close(force=True)


def test_a_line_is_answered_with_its_translation_and_the_time(terminal):
    terminal.sendline("one two")
    terminal.expect("ONE TWO\r\n")
    terminal.expect(r"\x1b\[2m[\d.]+ s\x1b\[0m")  # dim
    terminal.expect("> ")
    terminal.sendline("One is here. Two is there. 😀")
    terminal.expect("ONE IS HERE. TWO IS THERE. 😀\r\n")
    terminal.expect("2 sentences")


def test_control_c_drops_the_line_and_control_d_quits(terminal):
    terminal.send("wrong wro")
    terminal.expect("wrong wro")
    terminal.sendintr()
    terminal.expect("> ")
    terminal.sendline("right")
    terminal.expect("RIGHT\r\n")
    terminal.expect("> ")
    assert "WRONG" not in terminal.before
    terminal.sendeof()
    terminal.expect("the end")
    terminal.expect(pexpect.EOF)
    terminal.wait()
    assert terminal.exitstatus == 0


def test_lines_are_remembered(terminal):
    terminal.sendline("first")
    terminal.expect("FIRST\r\n")
    terminal.expect("> ")
    terminal.sendline("second")
    terminal.expect("SECOND\r\n")
    terminal.expect("> ")
    terminal.send("\x10\x10\r")  # Ctrl-P: the line before
    terminal.expect("FIRST\r\n")


def test_blank_refused_and_interrupted_lines_end_nothing(terminal):
    terminal.sendline("   ")
    terminal.expect("> ")
    terminal.sendline("refuse this")
    terminal.expect("error: it was refused\r\n")
    terminal.expect("> ")
    terminal.sendline("interrupt this")
    terminal.expect("> ")
    terminal.sendline("go on")
    terminal.expect("GO ON\r\n")


def test_control_characters_are_shown_and_not_followed(terminal):
    terminal.sendline("one \x16\x1b[31mtwo\x16\x07")  # Ctrl-V: the next one as it is
    terminal.expect_exact("ONE \\x1b[31MTWO\\x07\r\n")


def test_bytes_that_are_no_text_end_nothing():
    environment = os.environ | {"TERM": "dumb", "LC_ALL": "C.UTF-8"}
    child = pexpect.spawn(sys.executable, ["-c", PROGRAM], env=environment, timeout=60)
    child.expect("> ")
    child.send(b"a\xffb\r")
    child.expect(b"error: ")
    child.expect("> ")
    child.sendline("go on")
    child.expect("GO ON\r\n")
    child.close(force=True)


def test_candidates_are_listed_with_scores():
    yes = TranslatedSentence("Yes.", [BestText("Ja.", -0.1, ((0, 0),)), BestText("Doch.", -1.5)])
    (first, second) = candidate_list(TranslatedText("Ja.", (yes,))).split("\n")
    assert first.split() == ["1", "-0.1000", "Ja.", "0-0"]
    assert second.split() == ["2", "-1.5000", "Doch."]
    assert candidate_list(TranslatedText("Ja. Ja.", (yes, yes))).count("Yes.") == 2
