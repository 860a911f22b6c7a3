import os

import pytest
from watched_runs import loss_of, now, watched
from webhook_server import SECRET, status, webhook_server

from dragoman.config import NotifySettings
from dragoman.errors import ConfigError, RunError, UserError
from dragoman.rundir import RunDir
from dragoman.watch import delivery, notifying
from dragoman.watch.messages import Ending, Sent
from dragoman.watch.notifier import Order
from dragoman.watch.notifying import Launcher, RunItself, follow, send_trial

HOOK = NotifySettings(webhook_variable="HOOK")


@pytest.fixture
def webhook(monkeypatch):
    with webhook_server() as server:
        monkeypatch.setenv("HOOK", server.address)
        yield server


class Played:
    """A watch that shows these readings, the last one again and again."""

    def __init__(self, *readings):
        self.readings = list(readings)
        self.is_closed = False

    def refresh(self):
        return self.readings.pop(0) if len(self.readings) > 1 else self.readings[0]

    def close(self):
        self.is_closed = True


class EndsAt:
    """A launcher that ends in this way once the run is in that state."""

    def __init__(self, state, ending):
        self.state, self.end = state, ending

    def ending(self, now, wait_s):
        return self.end if now.state == self.state else None


def followed(watch, settings, launcher):
    complaints = []
    sent = Sent(attempts_before=0, had_begun=False)
    notifying._follow(watch, settings, sent, launcher, complaints.append)
    assert watch.is_closed
    return complaints


def test_a_lost_rank_and_the_end_are_sent(webhook):
    lost = [loss_of("rank 1 on b")]
    watch = Played(watched(), watched(happenings=lost), watched(happenings=lost, state="failed"))
    assert followed(watch, HOOK, EndsAt("failed", Ending(code=1))) == []
    assert webhook.kinds() == ["lost", "end"]


def test_only_what_was_asked_for_is_sent(webhook):
    lost = [loss_of("rank 1 on b")]
    watch = Played(watched(happenings=lost), watched(happenings=lost, state="finished"))
    only_end = HOOK.model_copy(update={"on": ("end",)})
    assert followed(watch, only_end, EndsAt("finished", Ending(code=0))) == []
    assert webhook.kinds() == ["end"]


def test_a_server_that_hangs_ends_with_the_time_after_the_end(webhook, monkeypatch):
    monkeypatch.setattr(notifying, "LAST_S", 0.2)
    webhook.hangs = True
    watch = Played(watched(state="finished"))
    (complaint,) = followed(watch, HOOK, EndsAt("finished", Ending(code=0)))
    assert SECRET not in complaint


def test_a_server_that_hangs_takes_no_time_from_a_command(webhook, monkeypatch, tmp_path):
    """Whose pauses become short with the end of the run, too."""
    monkeypatch.setattr(notifying, "LAST_S", 3.0)
    monkeypatch.setattr(delivery, "PAUSES_S", (100.0,) * 6)
    monkeypatch.setattr(delivery, "MOST_LAST_PAUSE_S", 0.01)
    webhook.hangs = True
    only_at_first = ("sh", "-c", f"mkdir '{tmp_path}/tried' && exit 1; exit 0")
    both = HOOK.model_copy(update={"command": only_at_first})
    watch = Played(watched(state="finished"))
    (complaint,) = followed(watch, both, EndsAt("finished", Ending(code=0)))
    assert "http://127.0.0.1" in complaint


def ending_of(pipe_input, run_now, launcher=None, **more):
    order = Order(
        run="r",
        settings=HOOK,
        launcher=launcher or os.getppid(),
        attempts_before=0,
        had_begun=False,
    )
    reading, writing = os.pipe()
    try:
        os.write(writing, (order.model_dump_json() + "\n" + pipe_input).encode())
        if more.get("is_closed"):
            os.close(writing)
        found = Launcher(reading)
        assert found.order == order
        return found.ending(run_now, 0.01)
    finally:
        os.close(reading)
        if not more.get("is_closed"):
            os.close(writing)


def test_a_launcher_that_is_silent_goes_on():
    assert ending_of("", now()) is None


def test_a_launcher_tells_how_it_ended():
    line = Ending(code=1, error="no").model_dump_json() + "\n"
    assert ending_of(line, now()) == Ending(code=1, error="no")


def test_a_launcher_that_was_killed_has_ended_when_its_workers_have():
    assert ending_of("", now(state="training"), is_closed=True) is None
    assert ending_of("", now(state="preempted"), is_closed=True) == Ending(code=None)


def test_workers_that_never_record_an_end_are_not_waited_for(monkeypatch):
    monkeypatch.setattr(notifying, "ORPHANS_S", -1.0)
    assert ending_of("", now(state="training"), is_closed=True) == Ending(code=None)


def test_a_launcher_whose_pipe_a_child_keeps_open_is_missed_all_the_same():
    assert ending_of("", now(state="failed"), launcher=1) == Ending(code=None)


def test_without_a_launcher_a_failure_may_be_followed_by_a_restart(monkeypatch):
    itself = RunItself()
    assert itself.ending(now(state="failed"), 0.0) is None
    monkeypatch.setattr(notifying, "SETTLED_S", -1.0)
    assert itself.ending(now(state="training"), 0.0) is None
    assert itself.ending(now(state="failed"), 0.0) == Ending(code=0)
    assert RunItself().ending(now(state="finished"), 0.0) == Ending(code=0)


def test_a_finished_run_that_is_followed_says_so(webhook, trained):
    run = RunDir(trained[1])
    text = run.config.read_text(encoding="utf-8").replace(
        'webhook_variable = ""', 'webhook_variable = "HOOK"'
    )
    run.config.write_text(text, encoding="utf-8")
    follow(run, pytest.fail)
    assert webhook.kinds() == ["end"]
    assert webhook.messages[0]["state"] == "finished"


def test_a_run_without_settings_is_not_followed(trained):
    with pytest.raises(UserError, match=r"no notify\.webhook_variable and no notify\.command"):
        follow(RunDir(trained[1]), pytest.fail)


def test_a_trial_arrives_or_says_why(webhook):
    send_trial(HOOK, "demo")
    assert webhook.kinds() == ["test"]
    webhook.answers = [status(404)]
    with pytest.raises(RunError, match="the test message was not delivered: http") as failed:
        send_trial(HOOK, "demo")
    assert SECRET not in str(failed.value)


def test_a_trial_needs_settings(monkeypatch):
    with pytest.raises(UserError, match="neither webhook_variable nor command"):
        send_trial(NotifySettings(), "demo")
    monkeypatch.delenv("HOOK", raising=False)
    with pytest.raises(ConfigError, match="HOOK is not set"):
        send_trial(HOOK, "demo")
