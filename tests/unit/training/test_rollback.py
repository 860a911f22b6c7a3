"""Numbers that go wrong in a real run: skipped a few times, then back to a checkpoint."""

import math

import pytest
from processes import steps

from dragoman.config import parse_config
from dragoman.errors import RunError
from dragoman.preparation import prepare
from dragoman.rundir import RunDir
from dragoman.telemetry.events import Trouble
from dragoman.telemetry.reader import read_events
from dragoman.training.loop import train
from dragoman.training.step import Updater


@pytest.fixture
def poisoned(digits, tmp_path, monkeypatch):
    """Trains the digits with a loss that is not a number whenever `is_bad(step, rate)`."""
    now = {}
    real_gradients, real_update = Updater.gradients, Updater.update

    def run(is_bad, *overrides):
        config = parse_config(digits.read_text(), "x.toml", list(overrides))
        prepare(config)
        directory = RunDir(tmp_path / "run")

        def gradients(self, work, pieces=1):
            now["step"] = work.step
            now["tries"] = now.get("tries", {})
            now["tries"][work.step] = now["tries"].get(work.step, 0) + 1
            found = real_gradients(self, work, pieces)
            if is_bad(work.step, now["tries"][work.step]):
                for parameter in self._objective.parameters():
                    parameter.grad.fill_(math.nan)
            return found

        monkeypatch.setattr(Updater, "gradients", gradients)
        return directory, lambda: train(config, directory)

    yield run
    monkeypatch.setattr(Updater, "gradients", real_gradients)
    monkeypatch.setattr(Updater, "update", real_update)


def troubles(run):
    events = [recorded.stamped.event for recorded in read_events(run)]
    return [event.what for event in events if isinstance(event, Trouble)]


def test_too_many_skips_lead_back_and_the_same_batches_follow_with_half_the_rate(poisoned):
    run, go = poisoned(
        lambda step, tries: 12 <= step <= 15 and tries == 1, "training.max_skipped=3"
    )
    assert go().state == "finished"
    said = troubles(run)
    assert sum("the update was skipped" in what for what in said) == 3
    back = [what for what in said if "back to step" in what]
    assert len(back) == 1
    assert "with 0.5 times the learning rate" in back[0]
    done = steps(run.root)
    assert sorted(done) == list(range(1, 21))
    assert all(step.updated for step in done.values())


def test_after_too_many_rollbacks_the_run_stops_and_says_why(poisoned):
    run, go = poisoned(
        lambda step, tries: step >= 12, "training.max_skipped=2", "training.max_rollbacks=1"
    )
    with pytest.raises(RunError, match="not finite"):
        go()
    assert sum("back to step" in what for what in troubles(run)) == 1
