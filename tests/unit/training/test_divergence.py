"""The policy on curves made up here: healthy ones that must pass, lost ones that must not."""

import dataclasses
import json
import math
import random

import pytest

from dragoman.config import TrainingSettings
from dragoman.training.divergence import (
    RATE_FACTOR,
    WINDOW,
    DivergenceState,
    after_rollback,
    judge,
    rollback_step,
    smaller_loss_scale,
)
from dragoman.training.state import RunState

SETTINGS = TrainingSettings(steps=1)
BAD = math.nan


def run(losses, state=None, first=1, settings=SETTINGS):
    """Follow the losses, one a step, until a verdict says not to; NaN: a skipped update."""
    state = state or DivergenceState()
    for step, loss in enumerate(losses, start=first):
        state, verdict = judge(state, step, loss, math.isfinite(loss), settings)
        if verdict.action in ("roll back", "stop"):
            return step, verdict, state
    return None, None, state


def is_calm(losses):
    return run(losses)[0] is None


def learning(steps, noise=0.05, start=10.4, floor=2.0, half_life=300.0, seed=1):
    """The steep beginning and the long tail of a healthy run."""
    chance = random.Random(seed)
    return [
        floor + (start - floor) * 0.5 ** (math.sqrt(step / half_life)) + chance.gauss(0, noise)
        for step in range(steps)
    ]


@pytest.mark.parametrize("half_life", [3.0, 30.0, 300.0, 30_000.0])
def test_the_steep_beginning_is_healthy(half_life):
    assert is_calm(learning(2000, half_life=half_life))


@pytest.mark.parametrize("noise", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("seed", [1, 2])
def test_noise_of_small_batches_is_healthy(noise, seed):
    """Ten thousand steps on the flat part, where only noise moves the median."""
    assert is_calm([abs(loss) for loss in learning(10_000, noise, half_life=1.0, seed=seed)])


def test_noise_with_heavy_tails_is_healthy():
    chance = random.Random(3)
    losses = learning(10_000, half_life=3.0)
    assert is_calm([loss + chance.lognormvariate(0, 1.0) for loss in losses])


def test_a_first_batch_that_happens_to_be_easy_or_hard_decides_nothing():
    losses = learning(1000, start=8.0)
    assert is_calm([7.0, *losses])
    assert is_calm([16.0, *losses])


def test_the_bumps_of_a_schedule_are_healthy():
    """The peak of the warm-up: for hundreds of steps the loss is half a nat higher again."""
    losses = learning(3000)
    for step in range(600, 1400):
        losses[step] += 0.5 * math.sin(math.pi * (step - 600) / 800)
    assert is_calm(losses)


def test_a_plateau_before_learning_begins_is_healthy():
    chance = random.Random(1)
    plateau = [6.8 + chance.gauss(0, 0.1) for _ in range(3000)]
    assert is_calm(learning(200, half_life=5.0, floor=6.8) + plateau + learning(1000, start=6.8))


def test_spikes_that_heal_are_healthy_however_high():
    losses = learning(3000)
    for begin in (500, 1000, 1700):
        for step in range(begin, begin + WINDOW // 2 - 5):
            losses[step] += 50.0 * 0.9 ** (step - begin) + 3.0
    assert is_calm(losses)


@pytest.mark.parametrize("to", [3.6, 6.5, 1e6])
def test_a_loss_that_jumps_and_stays_is_noticed_and_what_came_before_is_trusted(to):
    losses = learning(1500, half_life=30.0)
    begins = 1200
    losses[begins - 1 :] = [to] * 301
    step, verdict, _ = run(losses)
    assert begins < step <= begins + WINDOW
    assert verdict.action == "roll back"
    assert begins - WINDOW < verdict.trusted_step < begins


def test_a_slow_drift_is_noticed_and_leads_back_to_where_it_was_small():
    calm = learning(1500, half_life=30.0)
    drift = [calm[-1] + 0.001 * step for step in range(3000)]
    step, verdict, _ = run(calm + drift)
    assert step is not None
    lost_when_trusted = (calm + drift)[verdict.trusted_step - 1]
    assert lost_when_trusted < calm[-1] + 0.6
    assert verdict.trusted_step < step - WINDOW


def test_a_loss_that_grows_without_end_is_noticed_long_before_it_overflows():
    grows = [2.0 + math.exp(step / 10) for step in range(400)]
    step, _, _ = run(learning(1000, half_life=30.0) + grows)
    assert step <= 1000 + WINDOW


def test_a_run_that_leaves_where_it_began_for_worse_starts_over():
    """It never had a level to fall from, but the first guess was better."""
    step, verdict, _ = run([4.8, 9.0] + [390.0 - step / 10 for step in range(500)])
    assert step == WINDOW
    assert (verdict.action, verdict.trusted_step) == ("roll back", 0)


def test_a_run_resumed_without_a_memory_finds_its_level_first():
    assert run(learning(2000, noise=0.8, half_life=3.0), first=5000)[0] is None
    losses = learning(400, half_life=3.0) + [9.0] * 200
    step, verdict, _ = run(losses, first=5000)
    assert 5400 < step <= 5400 + WINDOW
    assert verdict.trusted_step > 5000


def test_a_resumed_run_comes_to_the_same_verdict_at_the_same_step():
    losses = [*learning(700, half_life=30.0), BAD, BAD, *[7.0] * 200]
    whole = run(losses)
    for cut in (1, 50, 350, 701, 740):
        _, _, before = run(losses[:cut])
        written = json.dumps({"numbers": dataclasses.asdict(before) | {"future": 1}})
        kept = RunState.from_json(json.loads(written)).divergence
        assert kept == before
        assert run(losses[cut:], kept, first=cut + 1) == whole


def test_what_a_checkpoint_of_an_older_version_lacks_is_unknown():
    assert RunState.from_json({"numbers": {}}).divergence == DivergenceState()


def test_updates_that_cannot_be_made_are_skipped_a_number_of_times_in_a_row():
    state = run(learning(300))[2]
    for count in range(1, SETTINGS.max_skipped + 1):
        state, verdict = judge(state, 300 + count, 5.0, False, SETTINGS)
        assert verdict.action == "skip"
        assert state.skipped == count
    state, verdict = judge(state, 311, math.inf, False, SETTINGS)
    assert verdict.action == "roll back"
    assert verdict.trusted_step == 300


def test_gradients_that_are_not_finite_leave_all_before_them_trusted_from_the_first_step_on():
    strict = TrainingSettings(steps=1, max_skipped=2)
    step, verdict, _ = run([*learning(36), BAD, BAD, BAD], settings=strict)
    assert (step, verdict.action, verdict.trusted_step) == (39, "roll back", 36)


@pytest.mark.parametrize("calm", [50, 500])
def test_losses_that_leave_their_height_before_they_are_not_finite_are_suspect(calm):
    rises = [20.0, 50.0, 200.0, 1e6]
    strict = TrainingSettings(steps=1, max_skipped=0)
    step, verdict, _ = run([*learning(calm, half_life=30.0), *rises, BAD], settings=strict)
    assert (step, verdict.trusted_step) == (calm + 5, calm)


def test_trouble_that_comes_again_makes_the_checkpoint_suspect_and_later_trouble_does_not():
    strict = TrainingSettings(steps=1, max_skipped=0)
    _, _, saved = run(learning(35))
    step, verdict, lost = run([5.0, BAD], saved, first=36, settings=strict)
    assert (step, verdict.trusted_step) == (37, 36)
    back = after_rollback(lost, saved, from_step=37, to_step=35)
    _, verdict, lost = run([5.0, 5.0, BAD], back, first=36, settings=strict)
    assert verdict.trusted_step == 34
    _, _, saved = run(learning(30))
    back = after_rollback(lost, saved, from_step=38, to_step=30)
    step, verdict, _ = run([5.0] * 300 + [BAD], back, first=31, settings=strict)
    assert (step, verdict.trusted_step) == (331, 330)


def test_a_checkpoint_of_a_version_that_knew_no_quiet_step_is_gone_back_from_as_ever():
    known = dataclasses.replace(run(learning(500))[2], quiet_step=0)
    strict = TrainingSettings(steps=1, max_skipped=0)
    _, verdict, _ = run([BAD], known, first=501, settings=strict)
    assert verdict.trusted_step == 500 - WINDOW


def test_one_good_step_ends_the_row():
    row = [BAD] * SETTINGS.max_skipped + [5.0]
    assert is_calm(row * 20)
    assert run(row * 3)[2].skipped == 0


def test_a_loss_that_is_not_finite_counts_though_an_update_was_made():
    _, verdict = judge(DivergenceState(), 1, math.nan, True, SETTINGS)
    assert verdict.action == "skip"


def test_how_often_is_a_setting():
    strict = TrainingSettings(steps=1, max_skipped=0, max_rollbacks=0)
    step, verdict, _ = run([5.0, BAD], settings=strict)
    assert (step, verdict.action) == (2, "stop")


def test_each_rollback_halves_the_rate_and_the_last_is_followed_by_a_stop():
    losses = learning(500, half_life=30.0)
    _, _, saved = run(losses[:200])
    state, factors, actions = saved, [], []
    for _ in range(SETTINGS.max_rollbacks + 1):
        step, verdict, state = run(losses[200:] + [9.0] * 200, state, first=201)
        assert 500 < step <= 500 + WINDOW
        actions.append(verdict.action)
        factors.append(state.rate_factor)
        state = after_rollback(state, saved, from_step=step, to_step=200)
    assert actions == ["roll back"] * 3 + ["stop"]
    assert factors == [1.0, 0.5, 0.25, 0.125]
    assert "schedule.peak" in verdict.what, "a stop comes with advice"


def test_a_rollback_forgets_the_divergence_and_remembers_itself():
    losses = learning(300, half_life=30.0)
    _, _, saved = run(losses)
    _, _, lost = run([BAD] * 11, saved, first=301)
    back = after_rollback(lost, saved, from_step=311, to_step=300)
    assert (back.skipped, back.recent, back.level) == (0, saved.recent, saved.level)
    assert (back.rollbacks, back.rate_factor) == (1, RATE_FACTOR)
    # From a checkpoint that knows of an earlier rollback, after two that it does not know of.
    lost = DivergenceState(rollbacks=2, rate_factor=0.25)
    later = after_rollback(lost, back, from_step=350, to_step=300)
    assert (later.rollbacks, later.rate_factor) == (3, 0.125)


def test_where_to_go_back_to():
    assert rollback_step(450, [100, 300, 500]) == 300
    assert rollback_step(300, [100, 300, 500]) == 300
    assert rollback_step(50, [100, 300, 500]) == 100
    assert rollback_step(50, []) == 0
    assert rollback_step(0, [20, 40]) == 0


def test_the_loss_scale_does_not_have_to_fall_all_the_way_again():
    restored = {"scale": 65536.0, "growth_factor": 2.0, "_growth_tracker": 7}
    now = {"scale": 32.0, "growth_factor": 2.0, "_growth_tracker": 0}
    assert smaller_loss_scale(now, restored) == restored | {"scale": 32.0}
    assert smaller_loss_scale(now | {"scale": 1e9}, restored)["scale"] == 32768.0
    assert smaller_loss_scale({}, {}) == {}
