import pytest
import torch
from recorded import events

from dragoman.config import parse_config
from dragoman.distributed.group import Group
from dragoman.errors import UserError
from dragoman.telemetry.events import ForecastMade, Stamped, to_line
from dragoman.training.checkpointing import roots_of
from dragoman.training.manifest import FORECAST
from dragoman.training.setup import given_forecast, start

ALONE = Group(0, 1, 0, torch.device("cpu"))


def test_a_device_that_is_not_there_is_refused(run_with):
    if torch.cuda.is_available():
        pytest.skip("this machine has one")
    with pytest.raises(UserError, match=r"set training\.device to cpu"):
        run_with("training.device=cuda")


def test_what_killed_attempts_left_is_removed_at_the_next_start(run_with, digits, tmp_path):
    memory = f"checkpoints.memory_folder={tmp_path}/memory"
    _, run = run_with("training.steps=5", memory)
    config = parse_config(digits.read_text(encoding="utf-8"), "x", [memory])
    roots = roots_of(run, config.checkpoints)
    for root in roots:
        (root / ".unfinished-step-00000009-123").mkdir(parents=True)
        (root / ".removed-step-00000001").mkdir()
        (root / ".latest-123").symlink_to("step-00000005")
    (run.root / f".seen-{16 * 'a'}-3").touch()
    (run.root / ".status.json-0123456789abcdef").touch()
    run.references.parent.mkdir(exist_ok=True)
    (run.references.parent / ".step-00000005.txt-0123456789abcdef").touch()
    with start(config, run, ALONE):
        hidden = [path.name for root in (run.root, *roots) for path in root.rglob(".*")]
        assert hidden == [".lock"]


def test_what_was_forecast_for_an_attempt_is_recorded_once(run_with, monkeypatch):
    made = ForecastMade(1, ["here"], 1.0, 2.0, 1.5, 2.5, 1.0, 1.0, 1e6)
    monkeypatch.setenv(FORECAST, to_line(Stamped(1.0, 1.0, made)))
    _, run = run_with("training.steps=1")
    assert events(run, ForecastMade) == [made]


@pytest.mark.parametrize("text", ["", "{", '{"kind":"step"}'])
def test_a_forecast_that_cannot_be_read_is_none(monkeypatch, text):
    monkeypatch.setenv(FORECAST, text)
    assert given_forecast() is None
