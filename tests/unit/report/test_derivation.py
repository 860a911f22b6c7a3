import math

import pytest
from unit.report.fake_run import WALL_AT, FakeRun, evaluated, started, step

from dragoman.errors import UserError
from dragoman.report.curves import MAX_POINTS, step_curves, thinned
from dragoman.report.derivation import facts_of
from dragoman.report.facts import Facts
from dragoman.report.record import read_run
from dragoman.rundir import RunDir, write_json
from dragoman.telemetry.events import AttemptEnded, Trouble


def facts(run: FakeRun, read_s_after_start: float = 20.0) -> Facts:
    return facts_of(read_run(run.directory, read_at=WALL_AT + read_s_after_start))


def test_the_wall_time_is_divided_without_rest(finished_run):
    times = facts(finished_run).times

    assert times.wall_s == 16.0
    assert times.stepping_s == 10.0
    assert times.evaluating_s == 2.0
    assert times.saving_s == 0.5
    assert times.other_s == 3.5
    assert times.lost_steps == 0


def test_the_speed_of_a_tiny_run_is_what_a_person_computes(finished_run):
    speed = facts(finished_run).speed

    assert speed.steps == 4
    assert speed.epochs == 0.5
    assert speed.tokens == 400
    assert speed.tokens_per_s == 40.0
    assert speed.tokens_per_wall_s == 25.0
    assert speed.mean_step_s == 2.5
    assert speed.median_step_s == 2.5
    assert speed.p95_step_s == pytest.approx(3.85)  # 5 % of the way back from the last of 3 gaps
    assert speed.p99_step_s == pytest.approx(3.97)
    assert (speed.slowest_step_s, speed.slowest_step) == (4.0, 4)
    assert speed.parts["backward"].share == 0.75
    assert speed.parts["backward"].mean_s == 1.875


def test_a_finished_run_has_its_reason_its_workers_and_its_hosts(finished_run):
    found = facts(finished_run)

    assert found.state.name == "finished"
    assert found.state.reason == "training.steps = 4 are done"
    assert found.attempts[0].ranks == 2
    assert found.attempts[0].hosts == ["host-0", "host-1"]
    assert [rank.host for rank in found.speed.ranks] == ["host-0", "host-1"]


def test_parameters_follow_from_the_shape_and_the_vocabulary(finished_run):
    assert facts(finished_run).model.parameters == 60_880_896


def test_the_noam_peak_is_a_rate_and_not_the_scale(finished_run):
    schedule = facts(finished_run).schedule

    assert schedule.scale == 2.0
    assert schedule.planned_peak_step == 4
    assert schedule.planned_peak_rate == pytest.approx(2 / math.sqrt(512) * 4 / 8000**1.5)
    assert (schedule.highest_rate, schedule.highest_rate_step) == (4e-4, 4)


def test_the_data_comes_from_the_manifest(finished_run):
    train, validation = facts(finished_run).data.splits

    assert (train.pairs_in, train.pairs_kept, train.dropped) == (1000, 990, {"source empty": 10})
    assert (train.target.language, train.target.tokens) == ("de", 800)
    assert validation.split == "validation"


def test_a_checkpoint_is_its_files_the_largest_first(finished_run):
    checkpoint = facts(finished_run).checkpoint

    assert [(file.name, file.bytes) for file in checkpoint.files] == [
        ("optimizer.safetensors", 800),
        ("model.safetensors", 400),
    ]
    assert checkpoint.bytes == 1200
    assert checkpoint.mean_save_s == 0.5


def test_the_best_bleu_may_lie_before_the_last_evaluation(empty_run):
    empty_run.with_events(
        [
            (0.0, started()),
            (1.0, step(1)),
            (3.0, evaluated(1, bleu=30.0)),
            (4.0, step(2)),
            (6.0, evaluated(2, bleu=29.0, validation_loss=2.0)),
        ]
    )
    learning = facts(empty_run).learning

    assert (learning.best_bleu.step, learning.best_bleu.bleu) == (1, 30.0)
    assert learning.lowest_loss.step == 2
    assert learning.last.step == 2


def test_a_later_attempt_takes_the_place_of_the_steps_it_repeats(empty_run):
    empty_run.with_events(
        [(0.0, started()), *((float(n), step(n, loss=9.0)) for n in (1, 2, 3, 4))]
    )
    empty_run.with_events(
        [
            (0.0, started(attempt=2, first_step=3)),
            (2.0, step(3, 2.0, loss=5.0)),
            (4.0, step(4, 2.0, loss=4.0)),
            (6.0, step(5, 2.0, loss=3.0)),
            (7.0, AttemptEnded(5, "finished", "done")),
        ],
        attempt=2,
    )
    found = facts(empty_run, 2000.0)

    assert found.curves.step == [1, 2, 3, 4, 5]
    assert found.curves.training_loss == [9.0, 9.0, 5.0, 4.0, 3.0]
    assert found.times.wall_s == 4.0 + 7.0  # the time between the attempts is nobody's
    assert found.times.stepping_s == 4 * 1.0 + 3 * 2.0
    assert (found.times.lost_steps, found.times.lost_s) == (2, 2.0)
    assert [attempt.state for attempt in found.attempts] == ["broken off", "finished"]
    assert found.attempts[0].lost_steps == 2


def test_work_after_a_checkpoint_is_lost_even_before_it_is_repeated(empty_run):
    empty_run.with_events([(0.0, started()), *((float(n), step(n)) for n in (1, 2, 3, 4))])
    empty_run.with_events(
        [(0.0, started(attempt=2, first_step=2)), (1.0, step(2))],
        attempt=2,
    )
    found = facts(empty_run, 1002.0)

    assert found.state.step == 2
    assert found.curves.step == [1, 2]
    assert found.times.lost_steps == 3


def test_an_evaluation_after_the_resumed_step_is_lost_too(empty_run):
    empty_run.with_events(
        [(0.0, started()), (1.0, step(1)), (2.0, step(2)), (4.0, evaluated(2, bleu=99.0))]
    )
    empty_run.with_events([(0.0, started(attempt=2, first_step=2)), (1.0, step(2))], attempt=2)
    found = facts(empty_run, 1002.0)

    assert found.learning.best_bleu is None
    assert found.times.lost_s == 1.0 + 2.0


def test_a_torn_last_line_costs_that_event_only(finished_run):
    path = finished_run.directory.events_of(1, 0)
    path.write_bytes(path.read_bytes()[:-40])
    path = finished_run.directory.events_of(1, 1)
    path.write_bytes(path.read_bytes()[:-40])
    found = facts(finished_run)

    assert found.speed.steps == 4
    assert found.state.name == "training"


@pytest.mark.parametrize(("silent_s", "state"), [(100.0, "training"), (130.0, "broken off")])
def test_a_run_that_is_silent_for_long_has_broken_off(empty_run, silent_s, state):
    empty_run.with_events([(0.0, started()), (1.0, step(1)), (2.0, step(2))])

    assert facts(empty_run, 2.0 + silent_s).state.name == state


@pytest.mark.parametrize(("silent_s", "state"), [(2900.0, "training"), (3100.0, "broken off")])
def test_a_run_with_long_silences_is_given_more_time(empty_run, silent_s, state):
    empty_run.with_events([(0.0, started()), (1000.0, step(1))])

    assert facts(empty_run, 1000.0 + silent_s).state.name == state


def test_a_heartbeat_is_a_sign_of_life(empty_run):
    empty_run.with_events([(0.0, started()), (1.0, step(1))])
    write_json(empty_run.directory.status, {"state": "training", "heartbeat_at": WALL_AT + 500})

    state = facts(empty_run, 505.0).state
    assert (state.name, state.silent_s) == ("training", 5.0)


def test_a_training_run_says_how_long_it_still_takes(empty_run):
    empty_run.with_events([(0.0, started()), (4.0, step(1))])

    assert facts(empty_run, 5.0).state.remaining_s == 3 * 4.0


def test_the_first_rank_to_fail_gives_the_reason(empty_run):
    def failed(why: str) -> AttemptEnded:
        return AttemptEnded(1, "failed", why)

    empty_run.with_events([(0.0, started(ranks=2)), (9.0, failed("lost rank 1"))])
    empty_run.with_events([(0.0, started(rank=1, ranks=2)), (8.0, failed("no memory"))], rank=1)
    state = facts(empty_run).state

    assert (state.name, state.reason) == ("failed", "rank 1: no memory")


def test_a_run_without_any_step_has_facts(empty_run):
    found = facts(empty_run)

    assert found.state.name == "preparing"
    assert found.speed is None
    assert found.data is None
    assert found.checkpoint is None
    assert found.curves.step == []


def test_a_trouble_that_all_ranks_tell_is_counted_once(empty_run):
    skipped = [Trouble(1, "gradients were not finite"), Trouble(2, "gradients were not finite")]
    for rank in (0, 1):
        empty_run.with_events(
            [(0.0, started(rank=rank, ranks=2)), (1.0, skipped[0]), (2.0, skipped[1])], rank=rank
        )
    (trouble,) = facts(empty_run).troubles

    assert (trouble.times, trouble.first_step, trouble.last_step) == (2, 1, 2)


def test_a_damaged_manifest_is_named_and_stops_nothing(finished_run):
    finished_run.directory.manifest.write_text("{ torn")
    found = facts(finished_run)

    assert found.data is None
    assert len(found.unreadable) == 1
    assert "manifest.json" in found.unreadable[0]
    assert found.attempts[0].ranks == 2  # as the events say


def test_losses_that_are_not_finite_become_none(empty_run):
    empty_run.with_events(
        [
            (0.0, started()),
            (1.0, step(1, loss=math.nan, updated=False)),
            (3.0, evaluated(1, bleu=None, validation_loss=math.inf)),
        ]
    )
    found = facts(empty_run)

    assert found.curves.training_loss == [None]
    assert found.learning.last.validation_loss is None
    assert found.learning.lowest_loss is None
    assert found.skipped_updates == 1


def test_a_folder_that_is_no_run_is_refused_in_one_sentence(tmp_path):
    with pytest.raises(UserError, match="is not a run directory") as refusal:
        read_run(RunDir(tmp_path), read_at=0.0)
    assert "\n" not in str(refusal.value)


def test_many_steps_become_few_points_and_lose_no_time():
    steps = [step(n, step_s=5.0 if n == 1234 else 1.0) for n in range(1, 10_001)]
    curves = step_curves(steps)

    assert len(curves.step) == MAX_POINTS
    assert curves.step[-1] == 10_000
    assert curves.mean_step_s[123] == 1.4  # ten steps in a point, one of them of 5 s
    assert curves.slowest_step_s[123] == 5.0
    assert curves.tokens_per_s[0] == 100.0


def test_a_thinned_series_keeps_both_ends():
    assert thinned(range(100), 4) == [0, 33, 66, 99]
    assert thinned([1, 2], 4) == [1, 2]
