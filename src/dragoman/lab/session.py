"""A lab for one command: taken down afterwards, however the command or this process is ended."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from dragoman.errors import UserError
from dragoman.lab.lab import Lab, refuse_existing, remove_lab

HOSTS_VARIABLE = "DRAGOMAN_LAB_HOSTS"
HOSTS_WORD = "{hosts}"
PROGRAM = "dragoman"


class Stopped(BaseException):
    """A signal arrived before there was a command to pass it on to."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


def run_in_lab(
    command: list[str],
    nodes: int,
    rate: str,
    node_rates: Mapping[int, str] | None = None,
    name: str = "",
) -> int:
    """Runs the command in a lab; returns its exit code, above 128 if a signal ended it.

    The lab has this name, or one that no other has.
    SIGTERM and SIGHUP are passed on to it, a second time as SIGKILL. Ctrl-C is not: a terminal
    sends it to the command as well.
    """
    process: subprocess.Popen[bytes] | None = None
    is_starting = False
    asked: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        if process is None:
            if len(asked) == 1 and not is_starting:
                raise Stopped(number)
        elif number != signal.SIGINT:
            process.send_signal(number if len(asked) == 1 else signal.SIGKILL)

    if name:
        refuse_existing(name)
    name = name or f"run-{secrets.token_hex(3)}"
    is_ours = True
    before = _handle(pass_on)
    try:
        try:
            lab = Lab.up(name, nodes, rate, node_rates)
        except UserError:  # it left nothing behind; a lab of this name is another's
            is_ours = False
            raise
        is_starting = True
        process = _start(command, lab)
        if asked and asked[0] != signal.SIGINT:
            process.send_signal(asked[0])
        code = process.wait()
    except Stopped as stopped:
        return stopped.exit_code
    finally:
        if is_ours:
            remove_lab(name)
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code


def _handle(handler: Callable[[int, FrameType | None], None]) -> dict[int, Any]:
    """Sets the handler and returns the old ones; ignored signals, as by nohup, stay ignored."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handled = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    return {number: signal.signal(number, handler) for number in handled}


def path_with(folder: Path, path: str) -> str:
    """Returns the search path for programs with this folder in it: first, unless it has it."""
    folders = path.split(os.pathsep)
    return path if str(folder) in folders else os.pathsep.join([str(folder), *folders])


def _start(command: list[str], lab: Lab) -> subprocess.Popen[bytes]:
    hosts = str(lab.hosts)
    words = [word.replace(HOSTS_WORD, hosts) for word in command]
    # As if the environment that runs this were activated: under sudo it never is.
    path = path_with(Path(sys.executable).parent, os.environ.get("PATH") or os.defpath)
    if words[0] == PROGRAM and not shutil.which(PROGRAM, path=path):  # a clone, not installed
        words[:1] = [sys.executable, "-m", PROGRAM]
    try:
        return subprocess.Popen(words, env=os.environ | {HOSTS_VARIABLE: hosts, "PATH": path})
    except OSError as error:
        raise UserError(f"{words[0]}: cannot be run ({error.strerror})") from error
