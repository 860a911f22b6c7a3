"""Real workers of this machine rehearse a recipe."""

import psutil
import pytest

from dragoman.check.rehearsal import rehearse_here
from dragoman.config import parse_config
from dragoman.errors import RunError, UserError
from dragoman.preparation import prepare

pytestmark = pytest.mark.timeout(200)
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


def test_two_workers_measure_steps_and_sums_and_leave_nothing(digits_config, tmp_path):
    files = {*tmp_path.rglob("*")}
    collective, computing = rehearse_here(digits_config, 2, lambda: False, 2.0, ONE_THREAD)
    assert {*tmp_path.rglob("*")} == files
    assert not psutil.Process().children(recursive=True)
    assert (collective.backend, collective.ranks, collective.elements) == ("gloo", 2, 23_040)
    assert len(collective.seconds) >= 2
    assert [each.rank for each in computing] == [0, 1]
    for each in computing:
        assert len(each.step_s) >= 2
        assert each.forward_s + each.backward_s + each.update_s > 0
        assert each.peak_memory_bytes > 10_000_000


def test_one_worker_has_nobody_to_sum_with(digits_config):
    prepare(digits_config)
    collective, computing = rehearse_here(digits_config, 1, lambda: False, 1.0, ONE_THREAD)
    assert collective is None
    assert computing[0].micro_batches == 2


def test_a_recipe_that_leaves_workers_idle_is_refused_by_them(digits):
    text = digits.read_text(encoding="utf-8")
    config = parse_config(text, "x", ["training.micro_batch_tokens=2000"])
    with pytest.raises(UserError, match="2 workers, but a step has only 1"):
        rehearse_here(config, 2, lambda: False, 1.0, ONE_THREAD)
    assert not psutil.Process().children(recursive=True)


def test_a_rehearsal_ends_when_it_is_asked_to(digits_config):
    asked = iter([False] * 10)
    with pytest.raises(RunError, match="stopped"):
        rehearse_here(digits_config, 2, lambda: next(asked, True), 2.0, ONE_THREAD)
    assert not psutil.Process().children(recursive=True)
