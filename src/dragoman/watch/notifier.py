"""Starts the process that sends notifications of a run, beside the one that launches the run.

That process reads the run directory and nothing else, so nothing waits for it: it may be slow, hang
or die. Its input is a pipe: a first line tells it what to do, a last one how the launch has ended,
and an end without that line that the launcher was killed. Its output is another pipe, not that of
the command, whose readers wait for its end.
"""

import logging
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from pydantic import BaseModel, ConfigDict

from dragoman.config import NotifySettings
from dragoman.errors import ConfigError, DragomanError
from dragoman.rundir import RunDir
from dragoman.telemetry.read.events import attempts_so_far
from dragoman.training.claim import has_begun
from dragoman.watch.delivery import webhook_address
from dragoman.watch.messages import Ending

logger = logging.getLogger(__name__)

PROGRAM = "dragoman.watch.notifying"
INTERRUPTED = 130


class Order(BaseModel):
    """The first line that the process reads."""

    model_config = ConfigDict(frozen=True)

    run: str
    settings: NotifySettings
    launcher: int
    """The id of the process that launches the run."""
    attempts_before: int
    had_begun: bool


def check_notify(settings: NotifySettings) -> None:
    """Refuses settings with which nothing could be sent from here."""
    if settings.webhook_variable:
        webhook_address(settings.webhook_variable, os.environ)
    if settings.command and shutil.which(settings.command[0]) is None:
        raise ConfigError(
            f"notify.command: no program {settings.command[0]!r} is found on this machine; "
            "name one by its path"
        )


@contextmanager
def notifications(settings: NotifySettings, run: RunDir) -> Iterator[Callable[[int], None]]:
    """While open, a process of its own sends what the settings ask for.

    To be called with the exit code of the launch; an exception is taken for its end too.
    """
    if not settings.is_on:
        yield lambda code: None
        return
    check_notify(settings)
    order = Order(
        run=str(run.root),
        settings=settings,
        launcher=os.getpid(),
        attempts_before=attempts_so_far(run),
        had_begun=has_begun(run),
    )
    ending = Ending(code=0)

    def ended(code: int) -> None:
        nonlocal ending
        ending = Ending(code=code)

    line_end = _start(order)
    try:
        yield ended
    except DragomanError as error:
        ending = Ending(code=error.exit_code, error=str(error).partition("\n")[0])
        raise
    except BaseException as error:
        ending = Ending(code=INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1)
        raise
    finally:
        if line_end is not None:
            _write(line_end, ending.model_dump_json())
            os.close(line_end)


def _start(order: Order) -> int | None:
    """Returns the descriptor of its input; None: the system has refused a process."""
    try:
        input_read, input_write = os.pipe()
        output_read, output_write = os.pipe()
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", PROGRAM],
                stdin=input_read,
                stdout=output_write,
                stderr=subprocess.DEVNULL,
                env=os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
                start_new_session=True,  # Ctrl-C and a closed terminal are the launcher's affair
            )
        except OSError:
            os.close(input_write)
            os.close(output_read)
            raise
        finally:
            os.close(input_read)
            os.close(output_write)
    except OSError as error:
        logger.warning(f"no notifications will be sent: {error.strerror}")
        return None
    reader = threading.Thread(
        target=_log_complaints, args=(process, output_read), name="complaints", daemon=True
    )
    reader.start()
    _write(input_write, order.model_dump_json())
    return input_write


def _log_complaints(process: "subprocess.Popen[bytes]", descriptor: int) -> None:
    """Logs each line, until the process ends, which leaves nothing behind."""
    rest = b""
    # Not through a file object, whose lock a thread that is stopped at exit would keep.
    while piece := os.read(descriptor, 4096):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            logger.warning(line.decode("utf-8", "replace"))
    os.close(descriptor)
    process.wait()


def _write(descriptor: int, line: str) -> None:
    with suppress(OSError):  # it has ended, and nobody needs it
        os.write(descriptor, f"{line}\n".encode())
