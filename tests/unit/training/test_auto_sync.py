from unittest.mock import Mock

import pytest

from dragoman.config import SyncSettings, parse_config
from dragoman.forecast.sync_modes import LADDER, Link, Workload, choose
from dragoman.telemetry.events import StepDone
from dragoman.training import auto_sync
from dragoman.training.auto_sync import (
    LOOK_AGAIN_S,
    WATCHED_STEPS,
    Choice,
    Computing,
    NetworkWatch,
    in_a_word,
    ladder_for,
    look,
    rehearse,
    worth_a_change,
)
from dragoman.training.updater import Gradients

FP32, BF16, *LOCAL = LADDER
WORKLOAD = Workload(60_880_896, 2, 1, 2, compute_s=1.8, backward_s=1.0)


def choice(megabits, ladder=LADDER):
    link = Link(megabits * 1e6 / 8, 1e-4)
    return Choice(link, WORKLOAD, *choose(WORKLOAD, link, ladder))


@pytest.mark.parametrize(
    ("megabits", "words"),
    [
        (10_000, "fp32"),
        (1_000, "bf16"),
        (100, "local local_steps=12 wire=bf16"),
    ],
)
def test_the_slower_the_network_the_fewer_bytes(megabits, words):
    found = choice(megabits)
    enough = [each for each in found.forecasts if each.exposed_s < 0.25 * WORKLOAD.compute_s]
    assert found.chosen == enough[0]
    if megabits > 100:
        assert in_a_word(found.chosen.settings) == words
    else:
        assert found.chosen.settings.is_local


def test_a_person_is_told_what_was_measured_chosen_and_what_else_there_is():
    first, *lines = choice(100).lines()
    assert "hosts send 100 Mbit/s" in first
    assert "computes for 1.80 s" in first
    assert len(lines) == len(LADDER)
    assert sum("->" in line for line in lines) == 1
    assert "243.5 MB a step" in lines[0]


def test_the_event_says_the_same():
    event = choice(100).event(step=7)
    assert (event.step, event.compute_s) == (7, 1.8)
    assert SyncSettings(**event.settings).is_local
    assert [*event.exposed_s][:2] == ["fp32", "bf16"]
    assert event.exposed_s["fp32"] > 10


@pytest.mark.parametrize(
    ("changes", "modes"),
    [
        ([], ["fp32", "bf16", *["local"] * 4]),
        (["optimizer.average_decay=0.99"], ["fp32", "bf16"]),
        (["optimizer.kind=schedule-free", "schedule.kind=constant"], ["fp32", "bf16"]),
    ],
)
def test_only_what_goes_with_the_rest_of_the_recipe_is_considered(digits, changes, modes):
    text = digits.read_text(encoding="utf-8")
    config = parse_config(text, "x", ["sync.mode=auto", "sync.group=host", *changes])
    ladder = ladder_for(config)
    assert [settings.mode for settings in ladder] == modes
    assert all(settings.group == "host" for settings in ladder if settings.is_local)


@pytest.mark.parametrize(("hosts", "parts"), [(["a", "a"], False), (["a", "b"], True)])
def test_workers_of_one_host_that_are_one_never_part(digits, monkeypatch, hosts, parts):
    """They sum all gradients in every step, and no computing of a window hides that."""
    text = digits.read_text(encoding="utf-8")
    config = parse_config(text, "x", ["sync.mode=auto", "sync.group=host"])
    # At which a step's gradients take 0.9 s: on one host, all that its two workers send.
    link = Link((40_000 if parts else 80_000) / 0.9, 1e-4)
    monkeypatch.setattr(auto_sync, "measure_link", lambda *_: link)
    group = Mock(ranks=2, gather=lambda own: [own], broadcast=lambda message: message)
    weights = Mock(**{"numel.return_value": 10_000})
    updater = Mock(**{"model.parameters.return_value": [weights]})
    found = look(config, updater, Computing(1.0, 0.1), hosts, group)
    assert found.chosen.settings.is_local == parts


def test_the_network_is_measured_when_nothing_else_is_on_its_way(digits, monkeypatch):
    config = parse_config(digits.read_text(encoding="utf-8"), "x", ["sync.mode=auto"])
    done = []
    group = Mock(ranks=2, gather=lambda own: [own], broadcast=lambda message: message)
    weights = Mock(**{"numel.return_value": 10_000})
    updater = Mock(**{"model.parameters.return_value": [weights]})
    updater.outer.wait.side_effect = lambda: done.append("waited")
    monkeypatch.setattr(
        auto_sync, "measure_link", lambda *_: done.append("measured") or Link(1e6, 1e-4)
    )
    look(config, updater, Computing(1.0, 0.1), ["a", "b"], group)
    assert done == ["waited", "measured"]


def gradients(forward_s, backward_s, ran_out=False):
    parts_s = {} if ran_out else {"forward": forward_s, "backward": backward_s}
    return Gradients(0.0, 0.0, ran_out, {"forward": 0.0, "backward": 0.0, **parts_s})


def test_a_rehearsal_that_runs_out_of_memory_goes_on_in_smaller_pieces():
    """As the step does; otherwise computing would seem to take no time, and nothing be hidden."""
    tried = []

    def computed(work, pieces):
        tried.append(pieces)
        return gradients(1.0, 2.0, ran_out=pieces < 4)

    updater = Mock(gradients=computed)
    work = Mock(step=1, batches=[Mock(source_BS=[0] * 8)] * 2)
    recorder, group = Mock(), Mock(host="a", gather=lambda own: [own])
    found = rehearse(updater, work, group, recorder)
    assert tried == [1, 2, 4, 4, 4]
    assert found == Computing(compute_s=3.0, backward_s=2.0 / 8)
    assert updater.sync.renew.call_count == 2
    assert [call.args[0].category for call in recorder.record_incident.call_args_list] == [
        "out-of-memory"
    ] * 2


def test_a_slower_network_changes_the_mode_and_a_little_faster_one_does_not_change_it_back():
    slow = choice(300)
    assert worth_a_change(slow, FP32)
    now = slow.chosen.settings
    assert not worth_a_change(slow, now)
    # Somewhat faster, a milder mode would do, if only just; twice as fast again, it does.
    steps_back = [
        megabits for megabits in range(300, 3000, 50) if worth_a_change(choice(megabits), now)
    ]
    enough = [m for m in range(300, 3000, 50) if choice(m).chosen.settings != now]
    assert enough[0] < steps_back[0]
    assert steps_back[-1] == 2950


def test_a_mode_that_is_not_on_the_ladder_is_left_for_one_that_is_clearly_enough():
    rehearsed = SyncSettings(mode="local")
    assert rehearsed not in LADDER
    assert worth_a_change(choice(10_000), rehearsed)


def step(exposed_s, computed_s=1.0):
    parts = {"forward": computed_s / 2, "backward": computed_s / 2, "communication": exposed_s}
    return StepDone(1, 0.0, 1.0, 1, 1.0, 1.0, True, computed_s + exposed_s, parts)


def watched(settings, exposed_s, steps=WATCHED_STEPS, **others):
    watch = NetworkWatch(settings, 0.0, **others)
    for _ in range(steps):
        watch.after_step(step(exposed_s), micro_batches=2)
    return watch


def test_it_looks_again_when_steps_wait_longer_than_promised():
    assert watched(FP32, exposed_s=0.5).looks_again(60.0)
    assert not watched(FP32, exposed_s=0.3).looks_again(1e9)
    assert not watched(FP32, exposed_s=0.5, steps=WATCHED_STEPS - 1).looks_again(60.0)


def test_it_looks_now_and_then_whether_a_milder_mode_would_do():
    watch = watched(LOCAL[0], exposed_s=0.0)
    assert not watch.looks_again(LOOK_AGAIN_S - 1)
    assert watch.looks_again(LOOK_AGAIN_S)


def test_looks_that_change_nothing_get_rarer():
    before = {"fruitless_looks": 1, "known_waits": watched(FP32, exposed_s=0.5).waits()}
    again = watched(FP32, exposed_s=0.5, **before)
    assert not again.looks_again(60.0)
    assert watched(FP32, 0.5, steps=2 * WATCHED_STEPS, **before).looks_again(60.0)
    assert not watched(LOCAL[0], 0.0, 2 * WATCHED_STEPS, fruitless_looks=1).looks_again(
        LOOK_AGAIN_S
    )


def test_a_network_that_becomes_slower_after_looks_that_changed_nothing_is_noticed_at_once():
    after_many = {"fruitless_looks": 5, "known_waits": watched(FP32, exposed_s=0.5).waits()}
    assert not watched(FP32, exposed_s=0.9, **after_many).looks_again(60.0)
    assert watched(FP32, exposed_s=5.0, **after_many).looks_again(60.0)
    assert not watched(FP32, 5.0, WATCHED_STEPS - 1, **after_many).looks_again(60.0)


def test_what_steps_compute_is_a_median_of_the_last_ones():
    watch = watched(FP32, exposed_s=0.0)
    watch.after_step(step(0.0, computed_s=50.0), micro_batches=2)
    assert watch.computing() == Computing(1.0, 0.25)
    assert auto_sync.WATCHED_STEPS % 12 == auto_sync.WATCHED_STEPS % 8 == 0
