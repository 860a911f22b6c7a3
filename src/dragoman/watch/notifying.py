"""Follows a run and sends notifications: the program beside a launcher, and `watch --notify`."""

import os
import select
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from dragoman.config import NotifySettings, load_config
from dragoman.distributed.launchers import host_name
from dragoman.distributed.parent import SAVING_S
from dragoman.errors import RunError, UserError
from dragoman.rundir import RunDir
from dragoman.watch.content import Now
from dragoman.watch.delivery import Channel, Try, to_command, to_webhook, webhook_address
from dragoman.watch.messages import Ending, Message, Sent, messages_of, trial_message
from dragoman.watch.notifier import Order, check_notify
from dragoman.watch.run_watch import RunWatch

EVERY_S = 1.0
LAST_S = 60.0
"""After the end of the launcher, within which the last messages are delivered."""
ORPHANS_S = SAVING_S + 5.0
"""For which workers whose launcher was killed may go on to save."""
SETTLED_S = 30.0
"""A run without a launcher beside us that failed this long ago is taken to have ended."""
ENDED = ("finished", "failed", "preempted", "broken off")
NICENESS = 10

Complain = Callable[[str], None]


def follow(run: RunDir, complain: Complain) -> None:
    """Sends what the settings of a run ask for, until it has ended; for any way to start it."""
    settings = load_config(run.config).notify
    if not settings.is_on:
        raise UserError(
            f"{run.root}: its recipe has no notify.webhook_variable and no notify.command; "
            "add one of them, and start the run again"
        )
    check_notify(settings)
    watch = RunWatch(run)
    now = watch.refresh().now
    sent = Sent(attempts_before=now.attempt - (now.state == "training"), had_begun=True)
    _follow(watch, settings, sent, RunItself(), complain)


def send_trial(settings: NotifySettings, name: str) -> None:
    """Sends one message by each way that is set, once; raises RunError where it was not taken."""
    if not settings.is_on:
        raise UserError("notify: neither webhook_variable nor command is set; set one of them")
    check_notify(settings)
    message = trial_message(name, host_name(), time.time())
    failures = [failure for attempt in _tries(settings) if (failure := attempt(message))]
    if failures:
        why = "; ".join(failure.why for failure in failures)
        raise RunError(f"the test message was not delivered: {why}")


class Launcher:
    """The process that launches the run, as far as its pipe tells."""

    def __init__(self, descriptor: int) -> None:
        """Reads what to do; raises ValidationError where that is cut off."""
        self._descriptor = descriptor
        self._lines = b""
        self._is_cut = False
        while b"\n" not in self._lines and not self._is_cut:
            self._read()
        line, _, self._lines = self._lines.partition(b"\n")
        self.order = Order.model_validate_json(line)
        self._killed_at: float | None = None

    def ending(self, now: Now, wait_s: float) -> Ending | None:
        """Waits at most so long; None: the run goes on. `now`: the run as it was read last."""
        is_gone = os.getppid() != self.order.launcher
        if not self._is_cut and select.select([self._descriptor], [], [], wait_s)[0]:
            self._read()
        if b"\n" in self._lines:
            with suppress(ValidationError):
                return Ending.model_validate_json(self._lines.partition(b"\n")[0])
        if not is_gone and not self._is_cut:
            return None
        # Killed. Its workers save and record how they ended.
        self._killed_at = self._killed_at or time.monotonic()
        if now.state in ENDED or time.monotonic() - self._killed_at > ORPHANS_S:
            return Ending(code=None)
        time.sleep(wait_s)
        return None

    def _read(self) -> None:
        piece = os.read(self._descriptor, 65536)
        self._lines += piece
        self._is_cut = not piece


class RunItself:
    """In the place of a launcher that is not known: a run ends when its records say so."""

    def __init__(self) -> None:
        self._ended_at: float | None = None

    def ending(self, now: Now, wait_s: float) -> Ending | None:
        time.sleep(wait_s)
        if now.state not in ENDED:
            self._ended_at = None
            return None
        self._ended_at = self._ended_at or time.monotonic()
        is_settled = time.monotonic() - self._ended_at > SETTLED_S
        return Ending(code=0) if now.state == "finished" or is_settled else None


def _follow(
    watch: RunWatch,
    settings: NotifySettings,
    sent: Sent,
    launcher: Launcher | RunItself,
    complain: Complain,
) -> None:
    channels = [Channel(attempt, complain) for attempt in _tries(settings)]
    ending: Ending | None = None
    try:
        watched = watch.refresh()
        while ending is None:
            ending = launcher.ending(watched.now, EVERY_S)
            watched = watch.refresh()  # after the end, so that nothing is missed
            messages, sent = messages_of(watched, sent, host_name(), ending)
            _send([each for each in messages if each.kind in settings.on], channels)
    finally:
        watch.close()
        until = time.monotonic() + LAST_S
        for channel in channels:  # all, before one of them is waited for
            channel.hurry(until)
        for channel in channels:
            channel.close(until)


def _send(messages: list[Message], channels: list[Channel]) -> None:
    for message in messages:
        for channel in channels:
            channel.send(message)


def _tries(settings: NotifySettings, variables: Mapping[str, str] = os.environ) -> list[Try]:
    tries = []
    if settings.webhook_variable:
        tries.append(to_webhook(webhook_address(settings.webhook_variable, variables)))
    if settings.command:
        tries.append(to_command(settings.command))
    return tries


def _complain(sentence: str) -> None:
    with suppress(OSError):  # the launcher has ended, and nobody reads it
        os.write(sys.stdout.fileno(), f"{sentence}\n".encode())


def main() -> None:
    with suppress(OSError):
        os.nice(NICENESS)
    try:
        launcher = Launcher(sys.stdin.fileno())
        order = launcher.order
        sent = Sent(attempts_before=order.attempts_before, had_begun=order.had_begun)
        _follow(RunWatch(RunDir(Path(order.run))), order.settings, sent, launcher, _complain)
    except Exception as error:
        # Its text may repeat an address.
        _complain(f"notifications have ended with a fault of ours ({type(error).__name__})")
    # A thread may still wait for a server that does not answer.
    os._exit(0)


if __name__ == "__main__":
    main()
