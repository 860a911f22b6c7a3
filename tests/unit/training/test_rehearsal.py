from unittest.mock import patch

import pytest
import torch

from dragoman.batches.shapes import shapes_of
from dragoman.config import parse_config
from dragoman.distributed.group import Group
from dragoman.errors import RunError, UserError
from dragoman.model.loss import Objective
from dragoman.training import rehearsal
from dragoman.training.rehearsal import (
    _Cost,
    computing,
    counted,
    in_all,
    step_batches,
    synthetic_plan,
)
from dragoman.training.updater import Gradients, Updater, initial_model

ALONE = Group(0, 1, 0, torch.device("cpu"))


@pytest.fixture
def config(digits):
    text = digits.read_text(encoding="utf-8")
    return parse_config(text, "x", ["training.micro_batch_tokens=60", "data.max_length=20"])


@pytest.fixture
def objective(config):
    return Objective(initial_model(config, 60), 0.1, 0.0)


@pytest.fixture
def shapes(config):
    return shapes_of(synthetic_plan(config, ranks=1), 4)


def test_steps_of_a_worker_alone_are_timed_part_by_part(objective, config, shapes):
    found = computing(objective, config, shapes, ALONE, box_s=1000.0)
    assert len(found["step_s"]) == 3  # of four, without the one in which memory still grew
    assert found["micro_batches"] == len(shapes[0])
    mean_s = sum(found["step_s"]) / 3
    parts_s = found["forward_s"] + found["backward_s"] + found["update_s"]
    assert 0 < found["last_backward_s"] < found["backward_s"]
    assert 0.5 * mean_s < parts_s <= mean_s


def test_steps_in_which_memory_grew_are_not_counted():
    """Their faults are those of a small model in a lab: 1,000 to 5,000 where memory grew."""
    faults = [9153, 1083, 2134, 8, 4, 4786, 1, 0, 3, 0, 12, 40]
    assert counted([_Cost(0.3, each) for each in faults]) == [3, 4, 6, 7, 8, 9, 10, 11]
    # A step of five seconds does not notice them.
    assert counted([_Cost(5.0, each) for each in faults]) == [*range(3, 12)]


def test_where_memory_goes_on_to_grow_all_steps_after_the_first_quarter_count():
    assert counted([_Cost(0.3, 5000)] * 8) == [*range(2, 8)]
    assert counted([_Cost(0.3, 5000)]) == [0]


def test_ranks_count_the_same_steps(objective, config, shapes):
    grown = iter([0, 0] * 2 + [0, 0, 0, 0, 0, 10**9, 0, 0])  # before and after each step

    with patch.object(rehearsal, "_page_faults", lambda: next(grown)):
        found = computing(objective, config, shapes, ALONE, box_s=1000.0)
    assert len(found["step_s"]) == 2  # of four, without the first, and the one that grew


def test_two_looks_count_by_their_steps():
    names = ("forward_s", "backward_s", "last_backward_s", "update_s")
    first = {"step_s": [1.0, 1.0, 1.0], **dict.fromkeys(names, 1.0), "peak_memory_bytes": 9}
    second = {"step_s": [2.0], **dict.fromkeys(names, 2.0), "peak_memory_bytes": 8}
    found = in_all(first, second)
    assert found["step_s"] == [1.0, 1.0, 1.0, 2.0]
    assert {found[name] for name in names} == {1.25}
    assert found["peak_memory_bytes"] == 9


def test_where_steps_take_long_some_micro_batches_stand_for_all(objective, config, shapes):
    passes = []

    def gradients(self, work, pieces=1):
        passes.append(len(work.batches))
        each = len(work.batches)
        return Gradients(0.0, 0.0, False, {"forward": 1.0 * each, "backward": 2.0 * each})

    with (
        patch.object(Updater, "gradients", gradients),
        patch.object(Updater, "update"),
        patch.object(rehearsal.time, "perf_counter", side_effect=iter(range(0, 10**6, 3)).__next__),
        patch.object(rehearsal, "collate", wraps=rehearsal.collate) as collate,
    ):
        found = computing(objective, config, shapes, ALONE, box_s=12.0)
    assert max(passes) < len(shapes[0])
    assert collate.call_count <= sum(passes)  # nothing is made that is not computed with
    assert found["forward_s"] == pytest.approx(len(shapes[0]), rel=0.3)
    assert found["backward_s"] == pytest.approx(2 * found["forward_s"])
    assert found["last_backward_s"] == pytest.approx(2.0)


def test_running_out_of_memory_names_the_host_and_the_setting(objective, config, shapes):
    nothing = Gradients(0.0, 0.0, True, {})
    with (
        patch.object(Updater, "gradients", return_value=nothing),
        pytest.raises(RunError, match=rf"{ALONE.host} ran out of memory .*micro_batch_tokens"),
    ):
        computing(objective, config, shapes, ALONE, box_s=1.0)


def test_the_ranks_share_a_step(objective, shapes):
    ranks = [Group(rank, 2, rank, torch.device("cpu")) for rank in range(2)]
    works = [step_batches(objective, shapes[0], 1, rank) for rank in ranks]
    assert sum(len(work.batches) for work in works) == len(shapes[0])
    assert works[0].tokens == works[1].tokens == sum(s.target_tokens for s in shapes[0])
    own = [sum(len(batch.target_out_N) for batch in work.batches) for work in works]
    assert sum(own) == works[0].tokens


def test_a_plan_without_data_refuses_idle_workers(config):
    with pytest.raises(UserError, match="999 workers"):
        synthetic_plan(config, ranks=999)
