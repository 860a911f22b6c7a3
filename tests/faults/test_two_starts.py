"""Two who start one run at the same moment: one trains it, the other is told so."""

import pytest
from processes import losses, start_dragoman

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.cluster), 2])
def test_of_two_starts_at_once_one_trains_and_the_other_is_refused(digits, tmp_path, workers):
    run = tmp_path / "run"
    command = ["train", digits, "--run", run, "--workers", workers]
    processes = [start_dragoman(*command, "--set", "training.steps=150") for _ in range(2)]
    ended = [(*process.communicate(), process.returncode) for process in processes]
    (_, trained, code), (_, refused, refusal) = sorted(ended, key=lambda end: end[2])
    assert (code, refusal) == (0, 2), f"{trained}\n{refused}"
    assert f"error: {run}: is being trained by another process" in refused
    assert "Traceback" not in trained + refused
    assert list(losses(run)) == list(range(1, 151)), "each step once, by one of them"
