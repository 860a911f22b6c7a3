import pytest
import torch
from recorded import events

from dragoman.batches.loader import Loader
from dragoman.distributed.group import Group
from dragoman.telemetry.events import (
    StepDone,
)
from dragoman.training.observer import RankParts
from dragoman.training.step import own_parts, parts_by_rank

PARTS = ("data", "forward", "backward", "communication", "checkpoint", "optimizer", "rest")


def done(rank, parts=PARTS):
    parts_s = {part: 10.0 * rank + place for place, part in enumerate(parts)}
    return StepDone(
        7, 0.1, 3.0, 500, 1e-3, 1.0, True, sum(parts_s.values()), parts_s, ready_s=5.0 + rank
    )


def message(events):
    group = [Group(rank, len(events), rank, torch.device("cpu")) for rank in range(len(events))]
    each = [own_parts(event, member) for event, member in zip(events, group, strict=True)]
    return [sum(values) for values in zip(*each, strict=True)]


def test_the_parts_of_every_rank_come_out_of_one_sum():
    events = [done(rank) for rank in range(3)]
    assert parts_by_rank(events[0], message(events)) == [RankParts.of(event) for event in events]


def test_communication_that_nobody_can_tell_from_computing_is_not_zero():
    without = [part for part in PARTS if part != "communication"]
    events = [done(rank, without) for rank in range(2)]
    found = parts_by_rank(events[0], message(events))
    assert [parts.communication_s for parts in found] == [None, None]
    assert [parts.forward_s for parts in found] == [1.0, 11.0]


def test_the_message_of_64_ranks_stays_below_5_kilobytes():
    constants = 7
    assert 8 * (constants + len(message([None] * 64))) < 5000


def test_parts_of_a_step_add_up_to_it(run_with):
    _, run = run_with()
    for event in events(run, StepDone):
        # Each is written to the microsecond.
        assert sum(event.parts_s.values()) == pytest.approx(event.step_s, abs=1e-5)
        assert min(event.parts_s.values()) >= 0


def test_a_wait_for_the_data_of_others_is_neither_data_nor_lateness(run_with, monkeypatch):
    take = Loader.next

    def waited(loader, *given):
        work = take(loader, *given)
        loader.waited_for_others_s = 1000.0
        return work

    monkeypatch.setattr(Loader, "next", waited)
    _, run = run_with("training.steps=2")
    for event in events(run, StepDone):
        assert event.parts_s["data"] < 0 < 1000 < event.parts_s["agreement"]
        assert event.ready_s < 0


def test_two_passes_need_twice_the_operations(run_with):
    """With twice the tokens of a micro-batch, they hold the same pairs."""
    settings = {"once": (300, 0.0), "twice": (600, 5.0)}
    steps = []
    for name, (tokens, weight) in settings.items():
        limits = ("training.steps=1", f"training.micro_batch_tokens={tokens}")
        _, run = run_with(*limits, f"training.r_drop={weight}", name=name)
        steps += events(run, StepDone)
    once, twice = (dict(step.counts) for step in steps)
    assert twice.pop("flops") == 2 * once.pop("flops")
    assert twice == once
    assert steps[0].loss != steps[1].loss
